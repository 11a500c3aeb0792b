import { type Input, textBlock } from 'millrace';
import { isRecord } from 'millrace/values';
import type { ClientMessage, Placing, ShownMessage } from '../chat/places.js';
import { shownMessageIn } from '../chat/shown-message-in.js';
import type { VerdictOfClient } from '../approvals/read-verdict.js';
import {
  badRequest,
  type ClientResult,
  clientToolError,
  contentOfParts,
  fieldOf,
  idOf,
  isShortId,
  messagesOf,
  type PartOptions,
  requireObject,
  resumeInput,
} from '../inbound.js';

/** A chat request of the AI SDK. */
export interface UiMessagesInput {
  /** The input of a call: the last user message, or the results that a suspended call waits for. */
  readonly input: Input;
  /** The client's id of the conversation. It is not secret, and does not authenticate the user. */
  readonly chatId: string;
  /** With results: the message with their tool calls, which the call continues. Pass it to `toUiMessageStream`. */
  readonly messageId?: string;
  /** The ids of the tool calls with results, if any. Pass them to `toUiMessageStream`. */
  readonly clientResults?: readonly string[];
}

/**
 * Parses the request body of the AI SDK's chat transport: the text and the files of its last message if that is a user
 * message, or the outputs of suspended tools if it is an assistant message. Ignores the content of earlier messages: the
 * session has it. Throws an `invalidRequest` error if the body is not valid. `options` read its data parts and other parts.
 */
export const inputOfUiMessages = (body: unknown, options?: PartOptions): UiMessagesInput => {
  requireObject(body);
  const last = uiMessagesOf(body).at(-1);
  const chatId = idOf(fieldOf(body, 'id'), 'id');
  if (last === undefined && isRegenerate(body)) return { input: '', chatId };
  const parts = fieldOf(last, 'parts');
  if (fieldOf(last, 'role') === 'user') {
    return { input: contentOfParts(parts, options), chatId };
  }
  const { messageId } = answerOfUiMessages(body);
  if (!Array.isArray(parts)) throw badRequest('the last message must have a list of parts');
  return { ...resumeInput(resultsIn(parts)), chatId, messageId };
};

/** The messages of a request. A client may send its last one only, as `message`; to regenerate an answer, none. */
const uiMessagesOf = (body: unknown): readonly unknown[] => {
  const message = fieldOf(body, 'message');
  if (fieldOf(body, 'messages') !== undefined) return messagesOf(body);
  if (isRecord(message)) return [message];
  return isRegenerate(body) && isShortId(fieldOf(body, 'messageId')) ? [] : messagesOf(body);
};

const isRegenerate = (body: unknown): boolean => fieldOf(body, 'trigger') === 'regenerate-message';

/** The conversation and the assistant message that a request continues. */
export const answerOfUiMessages = (
  body: unknown,
): { readonly id: string; readonly messageId: string } => {
  const last = uiMessagesOf(body).at(-1);
  const messageId = fieldOf(last, 'id');
  if (fieldOf(last, 'role') !== 'assistant' || !isShortId(messageId)) {
    throw badRequest('the last message must be a user or assistant message');
  }
  return { id: idOf(fieldOf(body, 'id'), 'id'), messageId };
};

/**
 * Reads the verdicts on tool calls that wait for approval: those of the last message, if it is an assistant message. Empty
 * if the request has an input instead.
 */
export const verdictsOfUiMessages = (body: unknown): readonly VerdictOfClient[] => {
  requireObject(body);
  const last = uiMessagesOf(body).at(-1);
  const parts = fieldOf(last, 'parts');
  if (fieldOf(last, 'role') !== 'assistant' || !Array.isArray(parts)) return [];
  return parts.flatMap((part): readonly VerdictOfClient[] => {
    const approval = fieldOf(part, 'approval');
    const id = fieldOf(approval, 'id');
    if (fieldOf(part, 'state') !== 'approval-responded' || !isShortId(id)) return [];
    return [{ id, verdict: approval }];
  });
};

/** The place of a request in its conversation, and the client's id of its question. */
export interface UiMessagesPlace extends Pick<Placing, 'shown' | 'orAtHead' | 'replaced'> {
  readonly questionId?: string;
}

/**
 * Reads the place of a request: after the message before its question. A question that was edited, and an answer that is
 * generated again, are replaced. The id of an assistant message is that of its call.
 */
export const placeOfUiMessages = (body: unknown): UiMessagesPlace => {
  const messages = uiMessagesOf(body);
  const last = messages.at(-1);
  if (last !== undefined && fieldOf(last, 'role') !== 'user') {
    return { shown: messages.slice(-1).flatMap(shownIn), orAtHead: true };
  }
  const shown = messages.slice(0, -1).flatMap(shownIn);
  const questionId = fieldOf(last, 'id');
  const question = isShortId(questionId) ? { questionId } : {};
  const messageId = fieldOf(body, 'messageId');
  const isAgain = typeof messageId === 'string' || isRegenerate(body);
  return {
    shown,
    ...question,
    ...(isAgain && { replaced: [messageId, questionId].filter(isShortId) }),
  };
};

const shownIn = (message: unknown): readonly ShownMessage[] =>
  shownMessageIn(message, (role) => contentIn(role, fieldOf(message, 'parts')));

/** The content of a message: of a user message, with its files. Tool calls and thoughts that a client sends are ignored. */
const contentIn = (role: 'user' | 'assistant', parts: unknown): ClientMessage | undefined => {
  const list: readonly unknown[] = Array.isArray(parts) ? parts : [];
  const texts = list.filter((part) => fieldOf(part, 'type') === 'text');
  const text = texts.map((part) => String(fieldOf(part, 'text'))).join('');
  if (role === 'assistant') return text === '' ? undefined : { role, content: [textBlock(text)] };
  const files = list.filter((part) => fieldOf(part, 'type') === 'file');
  if (text.trim() === '' && files.length === 0) return undefined;
  const content = contentOfParts([...texts, ...files]);
  return { role, content: typeof content === 'string' ? [textBlock(content)] : content };
};

/**
 * The outputs of suspended tools, which have a `data-suspended` part, in the last step with such tools. Earlier steps
 * have been resumed already; a later step comes from a failed attempt.
 */
const resultsIn = (parts: readonly unknown[]): readonly ClientResult[] => {
  const isStart = (part: unknown): boolean => fieldOf(part, 'type') === 'step-start';
  const last = parts.findLastIndex((part) => fieldOf(part, 'type') === 'data-suspended');
  const after = parts.slice(last).findIndex(isStart);
  const until = after === -1 ? parts : parts.slice(0, last + after);
  const step = until.slice(until.findLastIndex(isStart) + 1);
  return step.flatMap((part): readonly ClientResult[] => {
    if (fieldOf(part, 'type') !== 'data-suspended') return [];
    const data = fieldOf(part, 'data');
    const localId = fieldOf(data, 'localId');
    const toolCallId = fieldOf(data, 'toolCallId');
    if (!isShortId(localId) || !isShortId(toolCallId)) return [];
    const tools = step.filter((it) => fieldOf(it, 'toolCallId') === toolCallId);
    return tools.flatMap((tool) => resultOf(localId, tool));
  });
};

const resultOf = (localId: string, tool: unknown): readonly ClientResult[] => {
  switch (fieldOf(tool, 'state')) {
    case 'output-available':
      return fieldOf(tool, 'preliminary') === true ? [] : [[localId, fieldOf(tool, 'output')]];
    case 'output-error':
      return [[localId, clientToolError(fieldOf(tool, 'errorText'))]];
    default:
      return [];
  }
};
