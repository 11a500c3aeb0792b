import { estimateTokens } from '../fitting/estimate-tokens.js';
import { misuse } from '../errors.js';
import type { InputMessage } from '../input.js';
import type { Interceptor } from '../interceptor.js';
import type { Block, MediaSource } from '../message.js';
import { checkOptions, defined, type Rule, wholeNumber } from '../options.js';
import { guardInput, type GuardOptions, guardRules } from './guard-input.js';

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
