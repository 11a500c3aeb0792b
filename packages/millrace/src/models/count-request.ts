import { misuse } from '../values/errors.js';
import type { Block, Message } from '../values/message.js';
import { estimateText } from './estimate-tokens.js';
import type { ModelRequest } from './model.js';

type CountedRequest = Partial<Pick<ModelRequest, 'system' | 'tools' | 'messages' | 'outputSchema'>>;

interface Weight {
  readonly text: number;
  readonly media: number;
}

/** The assumed cost of an image, a recording or a document: vendors count by sizes that are unknown here. */
export const mediaTokens = 1_000;

/** The overhead of a message: three tokens and its role (OpenAI cookbook, "How to count tokens with tiktoken"). */
const messageTokens = 4;
const answerTokens = 3;

/** Counts the tokens of a request: messages, system prompt, and tools and answer schema as JSON. */
export const countRequest = (
  counter: TokenCounter,
  request: CountedRequest,
  model?: string,
): number => costOf(weighRequest(counter, request), factorFor(counter, model));

export const countMessages = (
  counter: TokenCounter,
  messages: readonly Message[],
  model?: string,
): number => {
  const factor = factorFor(counter, model);
  return messages.reduce((sum, message) => sum + costOf(weigh(counter, message), factor), 0);
};

export const factorFor = (counter: TokenCounter, model: string | undefined): number =>
  model === undefined ? 1 : (counter.factor?.(model) ?? 1);

/** Whole tokens: sums do not depend on their order. */
export const costOf = ({ text, media }: Weight, factor: number): number =>
  Math.ceil(text * factor) + media;

export const weighRequest = (
  counter: TokenCounter,
  { system, tools = [], messages = [], outputSchema }: CountedRequest,
): Weight => {
  const declared = outputSchema === undefined ? tools : [...tools, outputSchema];
  return sumOf([
    { text: answerTokens + (system === undefined ? 0 : messageTokens), media: 0 },
    textWeight(counter, system ?? ''),
    ...declared.map((part) => once(counter, part, () => textWeight(counter, JSON.stringify(part)))),
    ...messages.map((message) => weigh(counter, message)),
  ]);
};

export const weigh = (counter: TokenCounter, message: Message): Weight =>
  once(counter, message, () =>
    sumOf([{ text: messageTokens, media: 0 }, ...blockWeights(counter, message.content)]),
  );

const weights = new WeakMap<TokenCounter, WeakMap<object, Weight>>();

/** Caches the count of an immutable part per counter: requests repeat their messages and tools. */
const once = (counter: TokenCounter, part: object, weighed: () => Weight): Weight => {
  if (!Object.isFrozen(part)) return weighed();
  let known = weights.get(counter);
  if (known === undefined) weights.set(counter, (known = new WeakMap<object, Weight>()));
  const before = known.get(part);
  if (before !== undefined) return before;
  const weight = weighed();
  known.set(part, weight);
  return weight;
};

const blockWeights = (counter: TokenCounter, blocks: readonly Block[]): readonly Weight[] =>
  blocks.map((block) => blockWeight(counter, block));

const blockWeight = (counter: TokenCounter, block: Block): Weight => {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return textWeight(counter, block.text);
    case 'tool_call':
      return sumOf([
        textWeight(counter, block.name),
        textWeight(counter, block.invalidInput ?? JSON.stringify(block.input)),
      ]);
    case 'tool_result':
      return sumOf([
        textWeight(counter, block.note ?? ''),
        ...blockWeights(counter, block.content),
      ]);
    case 'vendor':
      return textWeight(counter, JSON.stringify(block.data));
    default:
      return { text: 0, media: mediaTokens };
  }
};

const textWeight = (counter: TokenCounter, text: string): Weight => ({
  text: text === '' ? 0 : checked(counter.count(text)),
  media: 0,
});

/** Counters are foreign code: with NaN, every request would seem to fit. */
const checked = (count: number): number => {
  if (Number.isFinite(count) && count >= 0) return count;
  throw misuse(`A token counter returned ${String(count)}: return 0 or more.`);
};

const sumOf = (parts: readonly Weight[]): Weight => {
  let text = 0;
  let media = 0;
  for (const part of parts) {
    text += part.text;
    media += part.media;
  }
  return { text, media };
};

/** Counts tokens. A tokenizer only needs `count`: `{ count: (text) => encode(text).length }`. */
export interface TokenCounter {
  /** The tokens of a string, 0 or more. Deterministic, also after `learn`. */
  count(text: string): number;
  /** The factor for counts of the model with this name. Default: 1. */
  factor?(model: string): number;
  /** Called with the estimated and the actual tokens of a request. */
  learn?(sample: TokenSample): void;
}

/** Creates a counter that calibrates itself per model by reported usage, by a factor from 0.5 to 2. Agents may share it. */
export const createTokenCounter = (): TokenCounter => {
  const learned = new Map<string, Calibration>();
  const of = (model: string): Calibration => learned.get(model) ?? uncalibrated;
  return {
    count: estimateText,
    factor: (model) => factorOf(of(model)),
    learn: (sample) => {
      learned.set(sample.model, calibrated(of(sample.model), sample));
    },
  };
};

/** The default counter, without state, for decisions that must be the same on replay. */
export const plainCounter: TokenCounter = Object.freeze({ count: estimateText });

interface TokenSample {
  readonly estimated: number;
  /** The provider's count, including tokens read from and written to its cache. */
  readonly actual: number;
  readonly model: string;
}

/** The ratios of actual to estimated tokens in the latest requests of a model, oldest first. */
export interface Calibration {
  readonly ratios: readonly number[];
}

/** The initial calibration. Two neutral samples keep the first request from deciding alone. */
export const uncalibrated: Calibration = { ratios: [1, 1] };

const memory = 9;

/** Samples below this are ignored: a vendor's overhead would dominate. */
const leastEstimate = 200;

const least = 0.5;
const most = 2;

/** Adds a sample. Ignores small ones, and ones below half of the estimate: those omit cached tokens. */
export const calibrated = (
  before: Calibration,
  { estimated, actual }: Pick<TokenSample, 'estimated' | 'actual'>,
): Calibration => {
  const ratio = actual / estimated;
  const isTelling = estimated >= leastEstimate && ratio >= least && Number.isFinite(ratio);
  if (!isTelling) return before;
  return { ratios: [...before.ratios, Math.min(ratio, most)].slice(-memory) };
};

/** The factor for estimates: the median ratio of the latest nine requests, from 0.5 to 2. */
export const factorOf = ({ ratios }: Calibration): number => {
  const sorted = [...ratios].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? 1;
  const high = sorted[Math.floor(middle)] ?? 1;
  return (low + high) / 2;
};
