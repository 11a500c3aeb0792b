import type { Input } from '@millrace/core';
import {
  badRequest,
  type ClientResult,
  failedInClient,
  fieldOf,
  idOf,
  isShort,
  messagesOf,
  refuseNoObject,
  resumingBy,
  saying,
  textOfParts,
} from '../inbound.js';
import { resultIdOf } from './metadata.js';

/** What a client of AG-UI asks for. */
export interface AgUiInput {
  /** The input of a call: what the user said last, or the results that a suspended call waits for. */
  readonly input: Input;
  /** The conversation, as the client calls it. It is not secret, and says nothing about who asks. */
  readonly threadId: string;
  /** The run, as the client calls it: for `toAgUi`. */
  readonly runId: string;
  /** With results: their tool calls. For `toAgUi`. */
  readonly clientResults?: readonly string[];
}

/**
 * Reads an AG-UI `RunAgentInput`: the text of its last message, if that is the user's, or the results of suspended tools, if it
 * is a tool's. What came before, and the state, are not taken from the client; its tools are not offered to the model. Throws an `invalidRequest`
 * error if the body is something else, or answers an interrupt.
 */
export const inputOfAgUi = (body: unknown): AgUiInput => {
  refuseNoObject(body);
  const resume = fieldOf(body, 'resume');
  if (Array.isArray(resume) && resume.length > 0) throw badRequest("'resume' is not supported");
  const messages = messagesOf(body);
  const threadId = idOf(fieldOf(body, 'threadId'), 'threadId');
  const runId = idOf(fieldOf(body, 'runId'), 'runId');
  const last = messages.at(-1);
  if (fieldOf(last, 'role') === 'user') return { input: saying(contentOf(last)), threadId, runId };
  if (fieldOf(last, 'role') !== 'tool') {
    throw badRequest("the last of the 'messages' must be the user's or a tool's");
  }
  return { ...resumingBy(resultsIn(messages)), threadId, runId };
};

const contentOf = (message: unknown): string => {
  const content = fieldOf(message, 'content');
  return typeof content === 'string' ? content : textOfParts(content);
};

/** The results at the end of the conversation that the client has written: those of the server's own tools have its ids. */
const resultsIn = (messages: readonly unknown[]): readonly ClientResult[] => {
  const last = messages.findLastIndex((message) => fieldOf(message, 'role') !== 'tool');
  return messages.slice(last + 1).flatMap((message): readonly ClientResult[] => {
    const toolCallId = fieldOf(message, 'toolCallId');
    if (!isShort(toolCallId) || fieldOf(message, 'id') === resultIdOf(toolCallId)) return [];
    const toolUseId = toolUseIdOf(toolCallId, messages);
    if (toolUseId === undefined) return [];
    const output = contentOf(message);
    const error = fieldOf(message, 'error');
    return [[toolUseId, typeof error === 'string' ? failedInClient(output, error) : output]];
  });
};

/** The id of a tool call begins with that of the message it is in; what follows is its own. */
const toolUseIdOf = (toolCallId: string, messages: readonly unknown[]): string | undefined => {
  const asking = messages.findLast((message) => {
    const toolCalls = fieldOf(message, 'toolCalls');
    return Array.isArray(toolCalls) && toolCalls.some((it) => fieldOf(it, 'id') === toolCallId);
  });
  const messageId = fieldOf(asking, 'id');
  if (typeof messageId !== 'string') return undefined;
  const before = `${messageId}/`;
  const toolUseId = toolCallId.slice(before.length);
  return toolCallId.startsWith(before) && toolUseId !== '' ? toolUseId : undefined;
};
