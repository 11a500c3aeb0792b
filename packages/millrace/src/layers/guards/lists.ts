import { misuse } from '../../values/errors.js';
import { estimateTokens } from '../../models/estimate-tokens.js';
import type { InputMessage } from '../../seams/input.js';
import type { Interceptor } from '../../seams/interceptor.js';
import type { Patterns } from '../interceptors/patterns.js';
import type { Block, MediaSource } from '../../values/message.js';
import { defined } from '../../values/json.js';
import { checkOptions, type Rule, wholeNumber } from '../../values/options.js';
import { guardInput, type InputGuardOptions, inputGuardRules, readingsOf } from './guard-input.js';

/**
 * Rejects input that matches none of these patterns, and user messages without text. Words match as in `denyList`; a
 * RegExp is tested on the raw text. A match shows what an input is about, not that it contains nothing else: only a
 * RegExp with `^` and `$` does. Input with only tool results is accepted.
 */
export const allowList = (patterns: Patterns, options: InputGuardOptions = {}): Interceptor => {
  checkOptions('allowList()', options, inputGuardRules);
  const allowed = readGuardPatterns('allowList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(normalize);
      if (texts.every((text) => allowed.some((it) => isFound(text, it)))) return true;
      return { allowed: false, reason: 'it matches nothing on the list' };
    },
    { name: 'allowList', history: true, ...defined(options) },
  );
};

/**
 * Rejects input that matches one of these patterns. Words match as whole words, ignoring case, encoding (NFKC), white
 * space and invisible characters; in scripts without spaces they match anywhere. A RegExp is tested on the raw and on
 * the normalized text and must not have the flags `g` or `y`. Look-alike letters (Cyrillic `а`), digits for letters and
 * other spellings are not recognized. To bound the time of a slow RegExp, put `maxInputLength` before it.
 */
export const denyList = (patterns: Patterns, options: InputGuardOptions = {}): Interceptor => {
  checkOptions('denyList()', options, inputGuardRules);
  const denied = readGuardPatterns('denyList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(normalize);
      const entry = denied.findIndex((it) => texts.some((text) => isFoundNormalized(text, it)));
      if (entry === -1) return true;
      return { allowed: false, reason: `it matches entry ${entry + 1} of the list` };
    },
    { name: 'denyList', history: true, ...defined(options) },
  );
};

const isFound = ({ folded, text }: NormalizedText, it: GuardPattern): boolean =>
  it.kind === 'words' ? hasWords(folded, it.words) : it.pattern.test(text);

const isFoundNormalized = (read: NormalizedText, it: GuardPattern): boolean =>
  isFound(read, it) || (it.kind !== 'words' && it.pattern.test(read.normalized));

type GuardPattern =
  | { readonly kind: 'words'; readonly words: string }
  | { readonly kind: 'pattern'; readonly pattern: RegExp };

interface NormalizedText {
  readonly text: string;
  readonly normalized: string;
  readonly folded: string;
}

const readGuardPatterns = (owner: string, patterns: Patterns): readonly GuardPattern[] => {
  const list = [patterns].flat();
  if (list.length === 0) throw misuse(`${owner} needs at least one pattern.`);
  return list.map((pattern: unknown) => {
    if (pattern instanceof RegExp) return { kind: 'pattern', pattern: stateless(owner, pattern) };
    const words = typeof pattern === 'string' ? foldCase(pattern).trim() : '';
    if (words !== '') return { kind: 'words', words };
    throw misuse(`${owner} takes regular expressions and words with visible characters.`);
  });
};

/** Rejects stateful regular expressions: they would accept every other text. */
const stateless = (owner: string, pattern: RegExp): RegExp => {
  if (!pattern.global && !pattern.sticky) return pattern;
  throw misuse(`${owner}: ${String(pattern)} is stateful. Remove its flags 'g' and 'y'.`);
};

const normalize = (text: string): NormalizedText => ({
  text,
  normalized: normalizeText(text),
  folded: foldCase(text),
});

/** Whether a folded text contains these words as whole words, if their script has spaces. */
const hasWords = (text: string, words: string): boolean => {
  const needsStart = bounded.test(lastOf(words.slice(0, 2), firstCharacter));
  const needsEnd = bounded.test(lastOf(words.slice(-2), lastCharacter));
  for (let at = text.indexOf(words); at !== -1; at = text.indexOf(words, at + 1)) {
    const end = at + words.length;
    const begins = !needsStart || !endsInWord.test(text.slice(Math.max(0, at - 2), at));
    if (begins && !(needsEnd && beginsInWord.test(text.slice(end, end + 2)))) return true;
  }
  return false;
};

const lastOf = (text: string, part: RegExp): string => part.exec(text)?.[0] ?? '';

const firstCharacter = /^[^]/u;
const lastCharacter = /[^]$/u;
// An underscore may be emphasis.
const endsInWord = /[\p{L}\p{N}\p{M}]$/u;
const beginsInWord = /^[\p{L}\p{N}\p{M}]/u;

/** A character of a word in a script with spaces between words. */
const bounded =
  /^(?![\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}])[\p{L}\p{N}\p{M}_]/u;

/** NFKC without invisible characters and combining marks; white space becomes one space or line break. Linear time. */
export const normalizeText = (text: string): string =>
  withoutMarks(text.replace(invisible, '').replace(longMarks, '$1').normalize('NFKC')).replace(
    /[\s\u2800]+/g,
    (space) => (lineBreak.test(space) ? '\n' : ' '),
  );

const foldCase = (text: string): string =>
  withoutMarks(normalizeText(text).toUpperCase().toLowerCase()).replaceAll('\n', ' ');

export const withoutMarks = (text: string): string =>
  text.replace(/[\u0300-\u036f\u20d0-\u20ff]+/g, '');

/** Characters without a glyph: joiners, fillers, soft hyphens, directions, tags, controls. */
const invisible = /(?:[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]|(?![\s\u0085])\p{Cc})+/gu;

/** The normalizer sorts marks: a long row would take quadratic time. */
const longMarks = /(\p{M}{16})\p{M}+/gu;

const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;

/** Maximum size of an input. Set at least one. */
export interface MaxInputLengthOptions extends InputGuardOptions {
  /** Code points of all text, names and URLs. */
  readonly characters?: number | undefined;
  /** Tokens of the same text, as `estimateTokens` counts them. */
  readonly tokens?: number | undefined;
  readonly blocks?: number | undefined;
  /** Total bytes of inline media. Media at a URL are not fetched and not counted. */
  readonly mediaBytes?: number | undefined;
}

type Size = Readonly<Record<Measure, number>>;
type Measure = 'characters' | 'tokens' | 'blocks' | 'mediaBytes';

/** Rejects input that is too long, regardless of the roles and number of its messages. */
export const maxInputLength = (options: MaxInputLengthOptions): Interceptor => {
  checkOptions('maxInputLength()', options, rules);
  const { characters, tokens, blocks, mediaBytes, ...named } = options;
  const limits = { characters, tokens, blocks, mediaBytes };
  const limited = measures.flatMap((of) =>
    limits[of] === undefined ? [] : [{ of, most: limits[of] }],
  );
  if (limited.length === 0) {
    throw misuse(`maxInputLength() needs at least one limit: ${measures.join(', ')}.`);
  }
  return guardInput(
    ({ input }) => {
      const size = sizeOf(input);
      const over = limited.find((it) => size[it.of] > it.most);
      if (over === undefined) return true;
      const reason = `it has ${size[over.of]} ${over.of}, more than the allowed ${over.most}`;
      return { allowed: false, reason };
    },
    {
      name: 'maxInputLength',
      history: true,
      userMessage: 'That is too long. Please shorten it.',
      ...defined(named),
    },
  );
};

const sizeOf = (input: readonly InputMessage[]): Size => {
  const blocks = input.flatMap(({ content }) => content.flatMap(withContent));
  const names = input.map((message) => ('name' in message ? (message.name ?? '') : ''));
  const written = [...names, ...blocks.map(textIn)].join('');
  const media = blocks.flatMap((block) => ('source' in block ? [block.source] : []));
  return {
    characters: codePoints(written),
    tokens: estimateTokens(written),
    blocks: media.length,
    mediaBytes: media.reduce((sum, source) => sum + bytesOf(source), 0),
  };
};

const withContent = (block: Block): readonly Block[] =>
  block.type === 'tool_result' ? [block, ...block.content] : [block];

const textIn = (block: Block): string => {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return block.text;
    case 'tool_call':
      return `${block.name}${JSON.stringify(block.input)}${block.invalidInput ?? ''}`;
    case 'tool_result':
      return block.note ?? '';
    case 'file':
      return `${block.name ?? ''}${urlOf(block.source)}`;
    case 'vendor':
      return JSON.stringify(block.data);
    default:
      return urlOf(block.source);
  }
};

const urlOf = (source: MediaSource): string =>
  source.kind === 'url' && !isInline(source.url) ? source.url : '';

const isInline = (url: string): boolean => /^\s*data:/i.test(url.slice(0, 64));

const bytesOf = (source: MediaSource): number => {
  if (source.kind === 'base64') return base64Bytes(source.data);
  if (source.kind === 'id' || !isInline(source.url)) return 0;
  const [head = '', ...data] = source.url.split(',');
  return /;\s*base64\s*$/i.test(head.slice(-32)) ? base64Bytes(data.join(',')) : source.url.length;
};

const base64Bytes = (data: string): number =>
  Math.floor((data.replace(/[\s=]+/g, '').length * 3) / 4);

const codePoints = (text: string): number => text.length - (text.match(pairs)?.length ?? 0);

const pairs = /[\ud800-\udbff][\udc00-\udfff]/g;
const measures = ['characters', 'tokens', 'blocks', 'mediaBytes'] as const;

const rules: Readonly<Record<keyof MaxInputLengthOptions, Rule>> = {
  ...inputGuardRules,
  characters: wholeNumber(1),
  tokens: wholeNumber(1),
  blocks: wholeNumber(0),
  mediaBytes: wholeNumber(0),
};
