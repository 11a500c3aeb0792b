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

/** What a chat request of the AI SDK asks for. */
export interface UiMessagesInput {
  /** The input of a call: what the user said last, or the results that a suspended call waits for. */
  readonly input: Input;
  /** The conversation, as the client calls it. It is not secret, and says nothing about who asks. */
  readonly chatId: string;
  /** With results: the message that has their tools, and goes on. For `toUiMessageStream`. */
  readonly messageId?: string;
  /** With results: their tool calls. For `toUiMessageStream`. */
  readonly clientResults?: readonly string[];
}

/**
 * Reads the body of a request that the AI SDK's chat transport sends: the text of its last message, if that is the
 * user's, or the outputs of suspended tools, if it is the assistant's. What came before is not taken from the client; a session
 * remembers it. Throws an `invalidRequest` error if the body is something else.
 */
export const inputOfUiMessages = (body: unknown): UiMessagesInput => {
  refuseNoObject(body);
  const last = messagesOf(body).at(-1);
  const chatId = idOf(fieldOf(body, 'id'), 'id');
  const parts = fieldOf(last, 'parts');
  if (fieldOf(last, 'role') === 'user') return { input: saying(textOfParts(parts)), chatId };
  const messageId = fieldOf(last, 'id');
  if (fieldOf(last, 'role') !== 'assistant' || !Array.isArray(parts) || !isShort(messageId)) {
    throw badRequest("the last of the 'messages' must be the user's or the assistant's");
  }
  return { ...resumingBy(resultsIn(parts)), chatId, messageId };
};

/**
 * The outputs of suspended tools, which `data-suspended` tells: those of the last step that has such tools. The steps before it have been resumed; one after it is of
 * an attempt that failed.
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
    const toolUseId = fieldOf(data, 'toolUseId');
    const toolCallId = fieldOf(data, 'toolCallId');
    if (!isShort(toolUseId) || !isShort(toolCallId)) return [];
    const tool = step.find((it) => fieldOf(it, 'toolCallId') === toolCallId);
    switch (fieldOf(tool, 'state')) {
      case 'output-available':
        return fieldOf(tool, 'preliminary') === true ? [] : [[toolUseId, fieldOf(tool, 'output')]];
      case 'output-error':
        return [[toolUseId, failedInClient(fieldOf(tool, 'errorText'))]];
      default:
        return [];
    }
  });
};
