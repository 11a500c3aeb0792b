import type { ContentBlockParam, ToolResultBlockParam } from '@anthropic-ai/sdk/resources/messages';
import type { Message, ToolMessage } from '@millrace/core';
import { type WireNames, withNamePrefix } from '@millrace/wire';
import { toAssistantBlocks } from './assistant-blocks.js';
import { toUserBlocks, type UserBlock } from './user-blocks.js';

/** Writes what a message says. Throws `invalidRequest` for media that cannot be sent. */
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

/** Results come first; behind them the media of failed ones, which may say text only. */
const toResults = (
  { content }: ToolMessage,
  { toolId }: WireNames,
): readonly ContentBlockParam[] => {
  const results = content.map(({ toolUseId, content: said, isError }) => {
    const blocks = toUserBlocks(said, `The result of the tool use '${toolUseId}'`);
    const inside = isError ? failureText(blocks) : blocks;
    const result: ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: toolId(toolUseId),
      ...(inside.length === 0 ? {} : { content: inside }),
      ...(isError ? { is_error: true } : {}),
    };
    return { result, behind: isError ? blocks.filter(({ type }) => type !== 'text') : [] };
  });
  return [...results.map(({ result }) => result), ...results.flatMap(({ behind }) => behind)];
};

/** A failure may say text only, and must say some. */
const failureText = (blocks: readonly UserBlock[]): UserBlock[] => {
  const texts = blocks.filter(({ type }) => type === 'text');
  return texts.length > 0 ? texts : [{ type: 'text', text: 'The tool failed.' }];
};
