import type {
  BetaCacheControlEphemeral as CacheControlEphemeral,
  BetaContentBlockParam as ContentBlockParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import type { Turn } from './turns.js';

/** The lifetime of a prefix in Anthropic's prompt cache. */
export type CacheTime = '5m' | '1h';

/** The cache breakpoint for the end of a prefix. */
export const cacheMark = (time: CacheTime): CacheControlEphemeral => ({
  type: 'ephemeral',
  ttl: time,
});

/** Adds a breakpoint to a serialized block, before its closing brace. */
const markBlock = (json: string, mark: CacheControlEphemeral): string =>
  `${json.slice(0, -1)},"cache_control":${JSON.stringify(mark)}}`;

/** Adds a breakpoint to the last of some serialized blocks. */
export const withLastMarked = (
  blocks: readonly string[],
  mark: CacheControlEphemeral,
): readonly string[] =>
  blocks.map((json, index) => (index === blocks.length - 1 ? markBlock(json, mark) : json));

/**
 * Adds breakpoints to the last two user turns: the cache of the previous request ends at the first of them, and the
 * next request continues from the second. The API only looks back 20 blocks for a cached prefix.
 */
export const withMarks = (turns: readonly Turn[], mark: CacheControlEphemeral): readonly Turn[] => {
  const last = turns.length - 1;
  const before = turns.findLastIndex(({ role }, index) => role === 'user' && index < last);
  const marked = [...turns];
  for (const index of [before, last]) {
    const turn = turns[index];
    if (turn !== undefined) marked[index] = withEndMarked(turn, mark);
  }
  return marked;
};

const withEndMarked = ({ role, content }: Turn, mark: CacheControlEphemeral): Turn => {
  const end = content.findLastIndex(({ type }) => markable.has(type));
  return {
    role,
    content: content.map(({ type, json }, index) => ({
      type,
      json: index === end ? markBlock(json, mark) : json,
    })),
  };
};

const markable: ReadonlySet<ContentBlockParam['type']> = new Set([
  'text',
  'image',
  'document',
  'tool_use',
  'tool_result',
]);
