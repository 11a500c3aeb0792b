import { misuse } from '../../values/errors.js';
import { estimateTokens } from '../../models/estimate-tokens.js';
import type { InputMessage } from '../../seams/input.js';
import type { Interceptor } from '../../seams/interceptor.js';
import type { Patterns } from '../interceptors/patterns.js';
import type { Block, MediaSource } from '../../values/message.js';
import { checkOptions, defined, type Rule, wholeNumber } from '../../values/options.js';
import { guardInput, type GuardOptions, guardRules, readingsOf } from './guard-input.js';

/**
 * Refuses input that contains none of these patterns, and user messages without text. Words match as in `denyList`; a RegExp is tested on the raw text. A match says what an input is about, not that there is nothing else in it: only a RegExp with `^` and `$` does. Input that only brings tool results passes.
 */
export const allowList = (patterns: Patterns, options: GuardOptions = {}): Interceptor => {
  checkOptions('allowList()', options, guardRules);
  const allowed = readGuardPatterns('allowList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      if (texts.every((text) => allowed.some((it) => isFound(text, it)))) return true;
      return { allowed: false, reason: 'it holds nothing that is on the list' };
    },
    { name: 'allowList', ...defined(options) },
  );
};

/**
 * Refuses input that contains one of these patterns. Words match as whole words, case-insensitively, regardless of encoding (NFKC), white space and invisible characters; in scripts without spaces they match anywhere. A RegExp is tested on the raw and on the normalized text; the flags `g` and `y` are refused.
 * Look-alike letters (Cyrillic `а`), digits for letters and other spellings are not recognized. To bound the time of a slow RegExp, put `maxInputLength` before it.
 */
export const denyList = (patterns: Patterns, options: GuardOptions = {}): Interceptor => {
  checkOptions('denyList()', options, guardRules);
  const denied = readGuardPatterns('denyList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      const place = denied.findIndex((it) => texts.some((text) => isFoundAnyhow(text, it)));
      if (place === -1) return true;
      return { allowed: false, reason: `it holds what is at place ${place + 1} of the list` };
    },
    { name: 'denyList', ...defined(options) },
  );
};

const isFound = ({ folded, text }: Read, it: GuardPattern): boolean =>
  it.kind === 'words' ? hasWords(folded, it.words) : it.pattern.test(text);

const isFoundAnyhow = (read: Read, it: GuardPattern): boolean =>
  isFound(read, it) || (it.kind !== 'words' && it.pattern.test(read.cleaned));

type GuardPattern =
  | { readonly kind: 'words'; readonly words: string }
  | { readonly kind: 'pattern'; readonly pattern: RegExp };

/** A text in the forms in which it is looked at, each made once. */
interface Read {
  readonly text: string;
  readonly cleaned: string;
  readonly folded: string;
}

const readGuardPatterns = (owner: string, patterns: Patterns): readonly GuardPattern[] => {
  const list = [patterns].flat();
  if (list.length === 0) throw misuse(`${owner} needs at least one pattern.`);
  return list.map((pattern: unknown) => {
    if (pattern instanceof RegExp) return { kind: 'pattern', pattern: stateless(owner, pattern) };
    const words = typeof pattern === 'string' ? folded(pattern).trim() : '';
    if (words !== '') return { kind: 'words', words };
    throw misuse(`${owner} takes regular expressions, and words that have a visible character.`);
  });
};

/** Refuses a regular expression that remembers where it stopped: it would let every other text pass. */
export const stateless = (owner: string, pattern: RegExp): RegExp => {
  if (!pattern.global && !pattern.sticky) return pattern;
  throw misuse(
    `${owner}: ${String(pattern)} remembers where it stopped. Leave its flags 'g' and 'y' out.`,
  );
};

const read = (text: string): Read => ({
  text,
  cleaned: cleaned(text),
  folded: folded(text),
});

/** Tells whether words stand in a folded text as words: not as a part of longer ones, where their script has spaces. */
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
// An underscore is also a mark of emphasis.
const endsInWord = /[\p{L}\p{N}\p{M}]$/u;
const beginsInWord = /^[\p{L}\p{N}\p{M}]/u;

/** A character of a word, in a script that parts words: others write them one after the other, or add to them. */
const bounded =
  /^(?![\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}])[\p{L}\p{N}\p{M}_]/u;

/** Rewrites a text as it is read: characters of compatibility become plain ones (NFKC), those that nobody sees are gone, marks that are laid over letters too, and of white space one space is left, or one line break where there was any. In linear time. */
export const cleaned = (text: string): string =>
  withoutMarks(text.replace(invisible, '').replace(longMarks, '$1').normalize('NFKC')).replace(
    /[\s\u2800]+/g,
    (space) => (lineBreak.test(space) ? '\n' : ' '),
  );

const folded = (text: string): string =>
  withoutMarks(cleaned(text).toUpperCase().toLowerCase()).replaceAll('\n', ' ');

export const withoutMarks = (text: string): string =>
  text.replace(/[\u0300-\u036f\u20d0-\u20ff]+/g, '');

/** What is there and cannot be seen: joiners, fillers, soft hyphens, directions, tags, controls. */
const invisible = /(?:[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]|(?![\s\u0085])\p{Cc})+/gu;

/** A normaliser sorts marks: a long row of them would take it quadratic time. */
const longMarks = /(\p{M}{16})\p{M}+/gu;

const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;

/** How much an input may hold. At least one of them is needed; what is not named is not limited. */
export interface MaxInputLengthOptions extends GuardOptions {
  /** Code points of all texts, names and addresses. */
  readonly characters?: number;
  /** Tokens of the same, as `estimateTokens` counts them. */
  readonly tokens?: number;
  /** Images, recordings and files. */
  readonly blocks?: number;
  /** Bytes of those that come with the input, together. What stands at an address is not fetched, and not counted. */
  readonly mediaBytes?: number;
}

type Size = Readonly<Record<Measure, number>>;
type Measure = 'characters' | 'tokens' | 'blocks' | 'mediaBytes';

/** Refuses an input that is too long, of whatever role its messages are. How it is parted makes no difference. */
export const maxInputLength = (options: MaxInputLengthOptions): Interceptor => {
  checkOptions('maxInputLength()', options, rules);
  const { characters, tokens, blocks, mediaBytes, ...named } = options;
  const most = { characters, tokens, blocks, mediaBytes };
  const limited = measures.flatMap((of) =>
    most[of] === undefined ? [] : [{ of, most: most[of] }],
  );
  if (limited.length === 0) {
    throw misuse(`maxInputLength() needs one of ${measures.join(', ')}: what is to be limited.`);
  }
  return guardInput(
    ({ input }) => {
      const size = sizeOf(input);
      const over = limited.find((it) => size[it.of] > it.most);
      if (over === undefined) return true;
      const reason = `${over.of} ${size[over.of]}, and at most ${over.most} are allowed`;
      return { allowed: false, reason };
    },
    {
      name: 'maxInputLength',
      userMessage: 'That is too long. Please shorten it.',
      ...defined(named),
    },
  );
};

const sizeOf = (input: readonly InputMessage[]): Size => {
  const blocks = input.flatMap(({ content }) => content.flatMap(inner));
  const names = input.map((message) => ('name' in message ? (message.name ?? '') : ''));
  const written = [...names, ...blocks.map(writtenIn)].join('');
  const media = blocks.flatMap((block) => ('source' in block ? [block.source] : []));
  return {
    characters: codePoints(written),
    tokens: estimateTokens(written),
    blocks: media.length,
    mediaBytes: media.reduce((sum, source) => sum + bytesOf(source), 0),
  };
};

const inner = (block: Block): readonly Block[] =>
  block.type === 'tool_result' ? [block, ...block.content] : [block];

const writtenIn = (block: Block): string => {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return block.text;
    case 'tool_use':
      return `${block.name}${JSON.stringify(block.input)}${block.invalidInput ?? ''}`;
    case 'tool_result':
      return block.note ?? '';
    case 'file':
      return `${block.name ?? ''}${addressOf(block.source)}`;
    default:
      return addressOf(block.source);
  }
};

const addressOf = (source: MediaSource): string =>
  source.kind === 'url' && !isInline(source.url) ? source.url : '';

const isInline = (url: string): boolean => /^\s*data:/i.test(url.slice(0, 64));

const bytesOf = (source: MediaSource): number => {
  if (source.kind === 'base64') return base64Bytes(source.data);
  if (!isInline(source.url)) return 0;
  const [head = '', ...data] = source.url.split(',');
  return /;\s*base64\s*$/i.test(head.slice(-32)) ? base64Bytes(data.join(',')) : source.url.length;
};

const base64Bytes = (data: string): number =>
  Math.floor((data.replace(/[\s=]+/g, '').length * 3) / 4);

const codePoints = (text: string): number => text.length - (text.match(pairs)?.length ?? 0);

const pairs = /[\ud800-\udbff][\udc00-\udfff]/g;
const measures = ['characters', 'tokens', 'blocks', 'mediaBytes'] as const;

const rules: Readonly<Record<keyof MaxInputLengthOptions, Rule>> = {
  ...guardRules,
  characters: wholeNumber(1),
  tokens: wholeNumber(1),
  blocks: wholeNumber(0),
  mediaBytes: wholeNumber(0),
};
