import { type Input, MillraceError, toolOutput, toolResults } from '@millrace/core';
import { isRecord } from '@millrace/core/values';

/** The error for a malformed request. Its message must not quote the request. */
export const badRequest = (problem: string): MillraceError =>
  new MillraceError('invalidRequest', `The request is malformed: ${problem}.`, {
    userMessage: 'The request is malformed.',
    status: 400,
  });

/** Reads an own property; `undefined` for inherited ones. */
export const fieldOf = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;

export const requireObject = (body: unknown): void => {
  if (!isRecord(body)) throw badRequest('it is not a JSON object');
};

/** Validates an untrusted id: short, and without characters that are special in paths or log lines. */
export const idOf = (value: unknown, name: string): string => {
  if (typeof value === 'string' && /^[\w-][\w.:@-]{0,127}$/.test(value)) return value;
  throw badRequest(`'${name}' must be an id of up to 128 letters, digits and . : @ _ -`);
};

/** Enough for an id that is only returned to the client or compared with known ids. */
export const isShortId = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= 512;

export const messagesOf = (body: unknown): readonly unknown[] => {
  const messages = fieldOf(body, 'messages');
  if (Array.isArray(messages)) return messages;
  throw badRequest("'messages' must be a list");
};

/** The text of a message with parts. Throws on other parts than text, rather than ignore them silently. */
export const textOfParts = (parts: unknown): string => {
  if (!Array.isArray(parts)) throw badRequest('the last message must have a list of parts');
  return parts
    .map((part: unknown) => {
      const text = fieldOf(part, 'type') === 'text' ? fieldOf(part, 'text') : undefined;
      if (typeof text !== 'string') throw badRequest('the last message may only have text parts');
      return text;
    })
    .join('');
};

export const notBlank = (text: unknown): string => {
  if (typeof text === 'string' && text.trim() !== '') return text;
  throw badRequest('the last message has no text');
};

/** The result of a suspended tool call from a client. The id is the one within the agent call. */
export type ClientResult = readonly [localId: string, output: unknown];

/** The output of a tool that failed in the client. */
export const clientToolError = (...messages: readonly unknown[]): unknown => {
  const text = messages.filter((it) => typeof it === 'string').join('\n');
  return toolOutput({ content: text.trim() || 'The tool failed.', isError: true });
};

/** The input that resumes a call with results, and their ids for the stream. */
export const resumeInput = (
  results: readonly ClientResult[],
): { readonly input: Input; readonly clientResults: readonly string[] } => {
  if (results.length === 0) {
    throw badRequest(
      'the last message must be a user message or contain the result of a suspended tool',
    );
  }
  return {
    input: toolResults(Object.fromEntries(results)),
    clientResults: results.map(([localId]) => localId),
  };
};
