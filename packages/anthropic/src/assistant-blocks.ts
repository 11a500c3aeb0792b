import type {
  BetaContentBlockParam as ContentBlockParam,
  BetaTextCitationParam as TextCitationParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import type { AssistantMessage, TextBlock, ThinkingBlock } from 'millrace';
import { isEncodedSignature, type WireNames } from '@millrace/wire';
import { citationsBack } from './citations.js';
import { fieldsBack, opaqueBlock } from './vendor-block.js';
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
        return toText(block.text).map((text) => ({
          ...fieldsBack(block.vendorData),
          ...text,
          ...cited(block),
        }));
      case 'thinking':
        return toThinking(block);
      case 'tool_call': {
        const { id, name, input, vendorData } = block;
        const fields = fieldsBack(vendorData);
        return [{ ...fields, type: 'tool_use', id: toolId(id), name: toolName(name), input }];
      }
      case 'vendor':
        return [opaqueBlock(block)].filter((it) => it !== undefined);
      default:
        return [{ type: 'text', text: `[Your ${block.type}]` }];
    }
  });
  // The last block may not be thinking.
  return blocks.slice(0, blocks.findLastIndex((block) => !isThinking(block)) + 1);
};

export const isThinking = ({ type }: Pick<ContentBlockParam, 'type'>): boolean =>
  type === 'thinking' || type === 'redacted_thinking';

const cited = ({ citations }: TextBlock): { readonly citations?: TextCitationParam[] } => {
  const back = citationsBack(citations);
  return back.length === 0 ? {} : { citations: back };
};

const toThinking = (block: ThinkingBlock): ContentBlockParam[] => {
  const { text, signature, redacted, vendorData } = block;
  if (signature === undefined || signature === '') return [];
  // It belongs to another vendor.
  if (isEncodedSignature(signature)) return [];
  const fields = fieldsBack(vendorData);
  return redacted === true
    ? [{ ...fields, type: 'redacted_thinking', data: signature }]
    : [{ ...fields, type: 'thinking', thinking: text, signature }];
};
