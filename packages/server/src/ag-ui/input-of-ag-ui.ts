import { type Input, textBlock } from 'millrace';
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
  notBlank,
  textOfParts,
} from '../inbound.js';
import { resultIdOf } from './metadata.js';

/** A request of an AG-UI client. */
export interface AgUiInput {
  /** The input of a call: the last user message, or the results that a suspended call waits for. */
  readonly input: Input;
  /** The client's id of the conversation. It is not secret, and does not authenticate the user. */
  readonly threadId: string;
  /** The client's id of the run. Pass it to `toAgUi`. */
  readonly runId: string;
  /** The ids of the tool calls with results, if any. Pass them to `toAgUi`. */
  readonly clientResults?: readonly string[];
}

/**
 * Parses an AG-UI `RunAgentInput`: the text and files of its last message if that is a user message, or the results of suspended
 * tools if it is a tool message. Ignores earlier messages, the state and the client's tools. Throws an `invalidRequest`
 * error if the body is not valid, or resumes an interrupt. `options` read parts of other types.
 */
export const inputOfAgUi = (body: unknown, options?: PartOptions): AgUiInput => {
  requireObject(body);
  const resume = fieldOf(body, 'resume');
  if (Array.isArray(resume) && resume.length > 0) throw badRequest("'resume' is not supported");
  const messages = messagesOf(body);
  const threadId = idOf(fieldOf(body, 'threadId'), 'threadId');
  const runId = idOf(fieldOf(body, 'runId'), 'runId');
  const last = messages.at(-1);
  if (fieldOf(last, 'role') === 'user') {
    const content = fieldOf(last, 'content');
    const input =
      typeof content === 'string' ? notBlank(content) : contentOfParts(content, options);
    return { input, threadId, runId };
  }
  if (fieldOf(last, 'role') !== 'tool') {
    throw badRequest('the last message must be a user or tool message');
  }
  return { ...resumeInput(resultsIn(messages)), threadId, runId };
};

/**
 * Reads the verdicts in `resume`, on the interrupts that ended the run before: a payload of `true`, `false` or
 * `{ approved, input?, reason? }`; `cancelled` denies. Empty if the request has an input instead.
 */
export const verdictsOfAgUi = (body: unknown): readonly VerdictOfClient[] => {
  requireObject(body);
  const resume = fieldOf(body, 'resume') ?? [];
  if (!Array.isArray(resume)) throw badRequest("'resume' must be a list");
  return resume.map((entry) => {
    const id = fieldOf(entry, 'interruptId');
    if (!isShortId(id)) throw badRequest("'interruptId' must be the id of an interrupt");
    const isCancelled = fieldOf(entry, 'status') === 'cancelled';
    return { id, verdict: isCancelled ? false : fieldOf(entry, 'payload') };
  });
};

/**
 * Whether a request cancels all interrupts of the previous run and brings a new question: AG-UI clients must answer every
 * interrupt before they may ask again.
 */
export const asksInstead = (body: unknown): boolean => {
  const resume = fieldOf(body, 'resume');
  const messages = fieldOf(body, 'messages');
  return (
    Array.isArray(resume) &&
    resume.length > 0 &&
    resume.every((entry) => fieldOf(entry, 'status') === 'cancelled') &&
    Array.isArray(messages) &&
    fieldOf(messages.at(-1), 'role') === 'user'
  );
};

/** The question of such a request. The server cancels what waits. */
export const withoutCancelled = (body: unknown): unknown =>
  asksInstead(body) ? { ...Object(body), resume: [] } : body;

/** The place of a request in its conversation, and the client's id of its question. */
interface AgUiPlace extends Pick<Placing, 'shown' | 'isWhole' | 'orAtHead' | 'mayReplace'> {
  readonly questionId?: string;
}

/**
 * Reads the place of a request: after the last message before its question, or before its results. A client may name the call
 * instead, `''` for the beginning: `forwardedProps: { after }`.
 */
export const placeOfAgUi = (body: unknown): AgUiPlace => {
  const after = fieldOf(fieldOf(body, 'forwardedProps'), 'after');
  if (after === '') return { shown: [], isWhole: true };
  if (after !== undefined) return { shown: [{ id: idOf(after, 'forwardedProps.after') }] };
  const messages = messagesOf(body);
  const isQuestion = fieldOf(messages.at(-1), 'role') === 'user';
  if (isQuestion) {
    const id = fieldOf(messages.at(-1), 'id');
    const again = isShortId(id) ? { questionId: id, mayReplace: [id] } : {};
    return { shown: messages.slice(0, -1).flatMap(shownIn), isWhole: true, ...again };
  }
  return { shown: messages.flatMap(shownIn).slice(-1), orAtHead: true };
};

const shownIn = (message: unknown): readonly ShownMessage[] =>
  shownMessageIn(message, (role) => contentIn(role, fieldOf(message, 'content')));

/** The content of a message: of a user message, with its files. Tool calls and thoughts that a client sends are ignored. */
const contentIn = (role: 'user' | 'assistant', given: unknown): ClientMessage | undefined => {
  const isText = typeof given === 'string';
  if (role === 'assistant') {
    return isText && given !== '' ? { role, content: [textBlock(given)] } : undefined;
  }
  const content = isText ? given.trim() && [textBlock(given)] : contentOfParts(given);
  if (content === '') return undefined;
  return { role, content: typeof content === 'string' ? [textBlock(content)] : content };
};

const contentOf = (message: unknown): string => {
  const content = fieldOf(message, 'content');
  return typeof content === 'string' ? content : textOfParts(content);
};

/** The results that the client adds at the end. Results of the server's own tools have ids of the server. */
const resultsIn = (messages: readonly unknown[]): readonly ClientResult[] => {
  const last = messages.findLastIndex((message) => fieldOf(message, 'role') !== 'tool');
  return messages.slice(last + 1).flatMap((message): readonly ClientResult[] => {
    const toolCallId = fieldOf(message, 'toolCallId');
    if (!isShortId(toolCallId) || fieldOf(message, 'id') === resultIdOf(toolCallId)) return [];
    const localId = localIdOf(toolCallId, messages);
    if (localId === undefined) return [];
    const output = contentOf(message);
    const error = fieldOf(message, 'error');
    return [[localId, typeof error === 'string' ? clientToolError(output, error) : output]];
  });
};

/** The id of a tool call is the id of its message, a slash, and the id within the call. */
const localIdOf = (toolCallId: string, messages: readonly unknown[]): string | undefined => {
  const asking = messages.findLast((message) => {
    const toolCalls = fieldOf(message, 'toolCalls');
    return Array.isArray(toolCalls) && toolCalls.some((it) => fieldOf(it, 'id') === toolCallId);
  });
  const messageId = fieldOf(asking, 'id');
  if (typeof messageId !== 'string') return undefined;
  const before = `${messageId}/`;
  const localId = toolCallId.slice(before.length);
  return toolCallId.startsWith(before) && localId !== '' ? localId : undefined;
};
