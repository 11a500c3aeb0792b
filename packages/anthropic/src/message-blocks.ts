import type {
  BetaContentBlockParam as ContentBlockParam,
  BetaToolResultBlockParam as ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import type { Message, ToolMessage } from 'millrace';
import { type WireNames, withNamePrefix } from '@millrace/wire';
import { toAssistantBlocks } from './assistant-blocks.js';
import { toUserBlocks, type UserBlock } from './user-blocks.js';

/** Maps the content of a message. Throws `invalidRequest` for unsupported media. */
export const messageBlocks = (
  message: Message,
  naming: WireNames,
): readonly ContentBlockParam[] => {
  switch (message.role) {
    case 'user':
      return toUserBlocks(withNamePrefix(message), `The message '${message.id}'`);
    case 'assistant':
      return toAssistantBlocks(message, naming);
    case 'tool':
      return toResults(message, naming);
  }
};

const withoutMark = ({ cache_control: _, ...block }: UserBlock): UserBlock => block;

/** Results come first. Media of failed results follow, because a failed result may only contain text. */
const toResults = (
  { content }: ToolMessage,
  { toolId }: WireNames,
): readonly ContentBlockParam[] => {
  const results = content.map(({ toolCallId, content: output, isError }) => {
    const marked = toUserBlocks(output, `The result of the tool call '${toolCallId}'`);
    const mark = marked.findLast((block) => block.cache_control !== undefined)?.cache_control;
    // A result is marked as a whole.
    const blocks = mark === undefined ? marked : marked.map(withoutMark);
    const inside = isError ? failureText(blocks) : blocks;
    const result: ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: toolId(toolCallId),
      ...(inside.length === 0 ? {} : { content: inside }),
      ...(isError ? { is_error: true } : {}),
      ...(mark === undefined ? {} : { cache_control: mark }),
    };
    return { result, media: isError ? blocks.filter(({ type }) => type !== 'text') : [] };
  });
  return [...results.map(({ result }) => result), ...results.flatMap(({ media }) => media)];
};

/** A failed result must contain text, and nothing else. */
const failureText = (blocks: readonly UserBlock[]): UserBlock[] => {
  const texts = blocks.filter(({ type }) => type === 'text');
  return texts.length > 0 ? texts : [{ type: 'text', text: 'The tool failed.' }];
};
