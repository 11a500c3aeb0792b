import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import { calibrated, factorOf, uncalibrated } from '../../models/count-request.js';
import { estimateText, estimateTokens } from '../../models/estimate-tokens.js';
import { type SampleName, samples } from './samples.test-data.js';

/** Tokenizers that count exactly. */
export const tokenizers = { o200k, cl100k } as const;

/** How far counts of one kind of text are off, as parts of what there is: -0.2 is a fifth too low. */
export interface TokenErrors {
  readonly name: SampleName;
  readonly tokenizer: keyof typeof tokenizers;
  /** Of `estimateTokens`. */
  readonly plain: number;
  /** Of the default counter, before it has learned anything. */
  readonly before: number;
  /** Of the same on the second half of the text, when it has learned of the first half. */
  readonly after: number;
}

/** The errors over all kinds of texts. */
export const tokenErrors = (): readonly TokenErrors[] =>
  names.flatMap((name) => tokenizerNames.map((tokenizer) => errorsOf(name, tokenizer)));

/** A whole conversation's error. */
export const errorOf = (estimated: number, actual: number): number => estimated / actual - 1;

const errorsOf = (name: SampleName, tokenizer: keyof typeof tokenizers): TokenErrors => {
  const text = samples[name];
  const count = tokenizers[tokenizer];
  const half = Math.floor(text.length / 2);
  const middle = half + text.slice(half).search(/[\s,\p{P}]/u);
  const [first, second] = [text.slice(0, middle), text.slice(middle)];
  // As long as a request is: what is too small teaches nothing.
  const sample = { estimated: estimateText(first) * 4, actual: count(first) * 4 };
  const learned = [1, 2, 3].reduce((state) => calibrated(state, sample), uncalibrated);
  return {
    name,
    tokenizer,
    plain: errorOf(estimateTokens(text), count(text)),
    before: errorOf(estimateText(text), count(text)),
    after: errorOf(estimateText(second) * factorOf(learned), count(second)),
  };
};

/** The errors as a table in Markdown. */
export const tokenErrorTable = (): string => {
  const errors = tokenErrors();
  const cells = (name: SampleName): readonly string[] =>
    (['plain', 'before', 'after'] as const).flatMap((field) =>
      tokenizerNames.map((tokenizer) =>
        percent(errors.find((it) => it.name === name && it.tokenizer === tokenizer)?.[field] ?? 0),
      ),
    );
  const heads = ['`estimateTokens`', 'default counter', 'calibrated'];
  return [
    ['text', ...heads.flatMap((head) => tokenizerNames.map((it) => `${head}, ${it}`))],
    ['---', ...heads.flatMap(() => tokenizerNames.map(() => '---:'))],
    ...names.map((name) => [name, ...cells(name)]),
  ]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
};

const percent = (part: number): string => {
  const whole = Math.round(part * 100);
  return `${whole > 0 ? '+' : whole < 0 ? '−' : ''}${Math.abs(whole)} %`;
};

const isName = (name: string): name is SampleName => name in samples;
const names = Object.keys(samples).filter(isName);
const tokenizerNames = ['o200k', 'cl100k'] as const;
