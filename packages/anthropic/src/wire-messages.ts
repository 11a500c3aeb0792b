import type {
  AssistantMessageParam,
  ContentBlockParam,
  ToolResultBlockParam,
  UserMessageParam,
} from '@anthropic-ai/sdk/resources/messages';
import { type Message, MillraceError, type ToolMessage } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import { named, textAt } from '@millrace/wire';
import { toAssistantBlocks } from './assistant-blocks.js';
import { keptParts, type Naming, type Part } from './kept-parts.js';
import { toUserBlocks, type UserBlock } from './user-blocks.js';

/** A message on the wire, its blocks written. */
export interface WireMessage {
  readonly role: (UserMessageParam | AssistantMessageParam)['role'];
  readonly content: readonly Part[];
}

/**
 * Makes what writes conversations. The same messages always become the same text, however many follow: signed thinking
 * and the prompt cache both depend on that. It throws `invalidRequest` for media that cannot be sent, and where there is
 * nothing to send.
 */
export const wireMessages = (): ((
  messages: readonly Message[],
  naming: Naming,
) => readonly WireMessage[]) => {
  const contentOf = keptParts((message, naming) => blocksOf(message, naming).map(toPart));
  return (messages, naming) => {
    const turns: WireMessage[] = [];
    for (const message of messages) {
      takeTurn(
        turns,
        message.role === 'assistant' ? 'assistant' : 'user',
        contentOf(message, naming),
      );
    }
    const [first] = turns;
    if (first === undefined) {
      throw new MillraceError('invalidRequest', 'The messages of the request are empty.');
    }
    return withoutLastSpace(first.role === 'user' ? turns : [opening, ...turns]);
  };
};

const toPart = (block: ContentBlockParam): Part => ({
  kind: block.type,
  json: JSON.stringify(block),
});

/** The API wants a user to begin; a history may begin with a greeting, or be cut. */
const opening: WireMessage = {
  role: 'user',
  content: [toPart({ type: 'text', text: '(The conversation begins.)' })],
};

const blocksOf = (message: Message, naming: Naming): readonly ContentBlockParam[] => {
  switch (message.role) {
    case 'user':
      return toUserBlocks(named(message), `The message '${message.id}'`);
    case 'assistant':
      return toAssistantBlocks(message, naming);
    case 'tool':
      return toResults(message, naming);
  }
};

/** Results come first; behind them the media of failed ones, which may say text only. */
const toResults = ({ content }: ToolMessage, { toolId }: Naming): readonly ContentBlockParam[] => {
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

/** A blank question is one too: without it the model would go on with what it said before. */
const blank = toPart({ type: 'text', text: '(empty)' });

/** Joins what one side says in a row, and leaves out who says nothing, unless a turn of the user is lost by it. */
const takeTurn = (
  turns: WireMessage[],
  role: WireMessage['role'],
  content: WireMessage['content'],
): void => {
  const last = turns.at(-1);
  if (last?.role === role) {
    turns[turns.length - 1] = { role, content: [...last.content, ...content] };
  } else if (content.length > 0) turns.push({ role, content });
  else if (role === 'user') turns.push({ role, content: [blank] });
};

/** What a model is to go on with may not end in white space. */
const withoutLastSpace = (turns: readonly WireMessage[]): readonly WireMessage[] => {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.kind !== 'text') return turns;
  const text = textAt(parsedJson(block.json), 'text').trimEnd();
  const trimmed = toPart({ type: 'text', text });
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }];
};

/** Writes a message. */
export const messageText = ({ role, content }: WireMessage): string => {
  let blocks = '';
  for (const { json } of content) blocks += blocks === '' ? json : `,${json}`;
  return `{"role":"${role}","content":[${blocks}]}`;
};
