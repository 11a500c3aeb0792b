import type {
  AssistantMessageParam,
  ContentBlockParam,
  ToolResultBlockParam,
  UserMessageParam,
} from '@anthropic-ai/sdk/resources/messages';
import { type Message, MillraceError, type ToolMessage } from '@millrace/core';
import { named, type ToolNames } from '@millrace/wire';
import { toAssistantBlocks } from './assistant-blocks.js';
import { toWireId } from './tool-use-id.js';
import { toUserBlocks, type UserBlock } from './user-blocks.js';

/** A message on the wire. */
export interface WireMessage {
  readonly role: (UserMessageParam | AssistantMessageParam)['role'];
  readonly content: readonly ContentBlockParam[];
}

/**
 * Writes a conversation. The same messages always become the same text, however many follow: signed thinking and
 * the prompt cache both depend on that. Throws `invalidRequest` for media that cannot be sent, and where there is
 * nothing to send.
 */
export const toWireMessages = (
  messages: readonly Message[],
  names: Pick<ToolNames, 'toWire'>,
): readonly WireMessage[] => {
  const turns = inTurns(messages.map((message) => toWireMessage(message, names)));
  const [first] = turns;
  if (first === undefined) {
    throw new MillraceError('invalidRequest', 'The messages of the request are empty.');
  }
  return withoutLastSpace(first.role === 'user' ? turns : [opening, ...turns]);
};

/** The API wants a user to begin; a history may begin with a greeting, or be cut. */
const opening: WireMessage = {
  role: 'user',
  content: [{ type: 'text', text: '(The conversation begins.)' }],
};

const toWireMessage = (message: Message, names: Pick<ToolNames, 'toWire'>): WireMessage => {
  switch (message.role) {
    case 'user':
      return {
        role: 'user',
        content: toUserBlocks(named(message), `The message '${message.id}'`),
      };
    case 'assistant':
      return { role: 'assistant', content: toAssistantBlocks(message, names) };
    case 'tool':
      return { role: 'user', content: toResults(message) };
  }
};

/** Results come first; behind them the media of failed ones, which may say text only. */
const toResults = ({ content }: ToolMessage): readonly ContentBlockParam[] => {
  const results = content.map(({ toolUseId, content: said, isError }) => {
    const blocks = toUserBlocks(said, `The result of the tool use '${toolUseId}'`);
    const inside = isError ? failureText(blocks) : blocks;
    const result: ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: toWireId(toolUseId),
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

/** A blank question is one too: without it the model would go on with what it said before. */
const blank: ContentBlockParam = { type: 'text', text: '(empty)' };

/** Joins what one side says in a row, and leaves out who says nothing, unless a turn of the user is lost by it. */
const inTurns = (messages: readonly WireMessage[]): readonly WireMessage[] => {
  const turns: WireMessage[] = [];
  for (const { role, content } of messages) {
    const last = turns.at(-1);
    if (last?.role === role) {
      turns[turns.length - 1] = { role, content: [...last.content, ...content] };
    } else if (content.length > 0) turns.push({ role, content });
    else if (role === 'user') turns.push({ role, content: [blank] });
  }
  return turns;
};

/** What a model is to go on with may not end in white space. */
const withoutLastSpace = (turns: readonly WireMessage[]): readonly WireMessage[] => {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.type !== 'text') return turns;
  const trimmed = { ...block, text: block.text.trimEnd() };
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }];
};
