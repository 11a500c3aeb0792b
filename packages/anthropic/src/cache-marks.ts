import type {
  CacheControlEphemeral,
  ContentBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { WireMessage } from './wire-messages.js';

/** How long a prefix stays in the cache of the vendor. */
export type CacheTime = '5m' | '1h';

/** Marks the end of a prefix that is to be cached. */
export const cacheMark = (time: CacheTime): CacheControlEphemeral => ({
  type: 'ephemeral',
  ttl: time,
});

/**
 * Marks the ends of the last two things that users and tools said: the one behind which the cache of the
 * request before ended, and the one behind which the next will go on. The API looks back over 20 blocks only.
 */
export const withMarks = (
  messages: readonly WireMessage[],
  mark: CacheControlEphemeral,
): readonly WireMessage[] => {
  const last = messages.length - 1;
  const before = messages.findLastIndex(({ role }, index) => role === 'user' && index < last);
  return messages.map((message, index) =>
    index === last || index === before ? marked(message, mark) : message,
  );
};

const marked = ({ role, content }: WireMessage, mark: CacheControlEphemeral): WireMessage => {
  const end = content.findLastIndex(isMarkable);
  return {
    role,
    content: content.map((block, index) =>
      index === end && isMarkable(block) ? { ...block, cache_control: mark } : block,
    ),
  };
};

type Markable = Extract<
  ContentBlockParam,
  { readonly type: 'text' | 'image' | 'document' | 'tool_use' | 'tool_result' }
>;

const isMarkable = (block: ContentBlockParam): block is Markable =>
  ['text', 'image', 'document', 'tool_use', 'tool_result'].includes(block.type);
