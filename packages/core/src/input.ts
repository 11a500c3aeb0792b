import type { CallInfo } from './call-info.js';
import { messageOf, MillraceError } from './errors.js';
import { freezeMessage } from './freeze-message.js';
import { isRecord } from './json.js';
import {
  areBlocks,
  areContentBlocks,
  type AssistantMessage,
  type ContentBlock,
  isContentBlock,
  type Message,
  textBlock,
  type ToolMessage,
  type ToolResultBlock,
  type UserMessage,
} from './message.js';
import { unpaired } from './run.js';

/** A message as a caller may write it: the call gives it its id. */
export type InputMessage =
  Message | Omit<UserMessage, 'id'> | Omit<AssistantMessage, 'id'> | Omit<ToolMessage, 'id'>;

/**
 * What an agent can be asked with: a text, content blocks, a message or a list of messages and texts. A message of
 * another agent's becomes a user message with that agent's name; so does any single one.
 */
export type Input =
  string | readonly ContentBlock[] | InputMessage | readonly (InputMessage | string)[];

/**
 * Reads an input as messages of a call, each with a place in it, or throws an `invalidRequest` error that says what to pass. Results of
 * suspended tools come first, in a message of their own.
 */
export const readInput = (
  input: unknown,
  { callId, agent }: Pick<CallInfo, 'callId' | 'agent'>,
  placeOf: (index: number) => string = String,
): readonly Message[] => {
  const parts = Array.isArray(input) ? input : [input];
  if (parts.length === 0 || input === '') throw unreadable('it is empty');
  const areBlocks = parts.every(isContentBlock);
  const messages = areBlocks ? [{ role: 'user', content: parts }] : parts;
  const own = Array.isArray(input) ? agent.at(-1) : undefined;
  const read = messages.map((message, index) => ({
    ...toMessage(message, own),
    id: `${callId}/input/${placeOf(index)}`,
  }));
  const [first, ...others] = read;
  const fault = unpaired(first?.role === 'tool' ? others : read);
  if (fault !== undefined) throw unreadable(`it holds ${fault}`);
  return Object.freeze(read.map(freezeMessage));
};

const toMessage = (part: unknown, own: string | undefined): Message => {
  if (typeof part === 'string') return { id: '', role: 'user', content: [textBlock(part)] };
  if (!isMessage(part)) throw unreadable('it is neither a text, a content block nor a message');
  const message = copy(part);
  if (message.role !== 'assistant' || (own !== undefined && (message.name ?? own) === own)) {
    return message;
  }
  const { id, name } = message;
  const content = message.content.filter(isContentBlock);
  if (content.length === 0) throw unreadable('the message of another agent has no text or media');
  return { id, role: 'user', content, ...(name === undefined ? {} : { name }) };
};

/** A message holds what its role says and no more: a reply, for one, says more. */
const copy = ({ role, content, ...rest }: Message): Message => {
  const name = 'name' in rest && typeof rest.name === 'string' ? { name: rest.name } : {};
  try {
    // The role and the content of one message belong together, which a spread cannot say.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return {
      id: '',
      role,
      content: structuredClone(role === 'tool' ? content.map(plainResult) : content),
      ...name,
    } as Message;
  } catch (cause) {
    throw unreadable(messageOf(cause));
  }
};

const isMessage = (value: unknown): value is Message =>
  isRecord(value) &&
  ['user', 'assistant', 'tool'].some((role) => role === value['role']) &&
  Array.isArray(value['content']) &&
  value['content'].length > 0 &&
  blocksOf[value['role'] === 'user' || value['role'] === 'tool' ? value['role'] : 'assistant'](
    value['content'],
  );

const blocksOf = {
  user: areContentBlocks,
  assistant: areBlocks,
  tool: (content: unknown): boolean => Array.isArray(content) && content.every(isResult),
};

const isResult = (block: unknown): block is ToolResultBlock =>
  isRecord(block) &&
  block['type'] === 'tool_result' &&
  typeof block['toolUseId'] === 'string' &&
  typeof block['isError'] === 'boolean' &&
  areContentBlocks(block['content']);

/** Only what is known: a result that comes from outside says nothing else. */
const plainResult = ({ type, toolUseId, content, isError, details }: ToolResultBlock) => ({
  type,
  toolUseId,
  content,
  isError,
  ...(details === undefined ? {} : { details }),
});

const unreadable = (why: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The input cannot be read: ${why}. Pass a text, content blocks such as { type: 'text', text: '…' } or { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: '…' } } (or { kind: 'url', url: '…' }), a message such as { role: 'user', content: [blocks] }, or a list of messages.`,
  );
