import type { BetaContentBlockParam as ContentBlockParam } from '@anthropic-ai/sdk/resources/beta/messages';
import type { AssistantMessage, ThinkingBlock } from '@millrace/core';
import { isEncodedSignature, type WireNames } from '@millrace/wire';
import { decodeBlock } from './opaque-block.js';
import { toText } from './user-blocks.js';

/**
 * Maps an assistant message. It leaves out blocks that the API rejects: empty text, and thinking without a signature
 * of Anthropic. A note stands for media. Thinking at the end is dropped too, so a message with only thinking is empty.
 */
export const toAssistantBlocks = (
  { content }: AssistantMessage,
  { toolName, toolId }: WireNames,
): ContentBlockParam[] => {
  const blocks = content.flatMap((block): ContentBlockParam[] => {
    switch (block.type) {
      case 'text':
        return toText(block.text);
      case 'thinking':
        return toThinking(block);
      case 'tool_call': {
        const { id, name, input } = block;
        return [{ type: 'tool_use', id: toolId(id), name: toolName(name), input }];
      }
      default:
        return [{ type: 'text', text: `[Your ${block.type}]` }];
    }
  });
  // The last block may not be thinking.
  return blocks.slice(0, blocks.findLastIndex((block) => !isThinking(block)) + 1);
};

export const isThinking = ({ type }: Pick<ContentBlockParam, 'type'>): boolean =>
  type === 'thinking' || type === 'redacted_thinking';

const toThinking = ({ text, signature, redacted }: ThinkingBlock): ContentBlockParam[] => {
  if (signature === undefined || signature === '') return [];
  if (isEncodedSignature(signature))
    return [decodeBlock(signature)].filter((block) => block !== undefined);
  return redacted === true
    ? [{ type: 'redacted_thinking', data: signature }]
    : [{ type: 'thinking', thinking: text, signature }];
};
