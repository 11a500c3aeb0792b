import type {
  CacheControlEphemeral,
  ContentBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { Turn } from './turns.js';

/** How long a prefix stays in the cache of the vendor. */
export type CacheTime = '5m' | '1h';

/** Marks the end of a prefix that is to be cached. */
export const cacheMark = (time: CacheTime): CacheControlEphemeral => ({
  type: 'ephemeral',
  ttl: time,
});

/** Marks a block that is written: the last character of its text closes it. */
const markBlock = (json: string, mark: CacheControlEphemeral): string =>
  `${json.slice(0, -1)},"cache_control":${JSON.stringify(mark)}}`;

/** Marks the last of some blocks that are written. */
export const withLastMarked = (
  blocks: readonly string[],
  mark: CacheControlEphemeral,
): readonly string[] =>
  blocks.map((json, index) => (index === blocks.length - 1 ? markBlock(json, mark) : json));

/**
 * Marks the ends of the last two things that users and tools said: the one behind which the cache of the
 * request before ended, and the one behind which the next will go on. The API looks back over 20 blocks only.
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
