import { type Input, MillraceError, toolOutput, toolResults } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';

/** The error for a request that cannot be read. Its message says what is wrong, and nothing of what came. */
export const badRequest = (what: string): MillraceError =>
  new MillraceError('invalidRequest', `The request cannot be read: ${what}.`, {
    userMessage: 'The request cannot be read.',
    status: 400,
  });

/** Reads a field of what came; what it has not got itself is `undefined`. */
export const fieldOf = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;

/** Refuses a body that is no object. */
export const refuseNoObject = (body: unknown): void => {
  if (!isRecord(body)) throw badRequest('it is not a JSON object');
};

/** An id from outside: short, and without anything that means something in a path or a line of a log. */
export const idOf = (value: unknown, name: string): string => {
  if (typeof value === 'string' && /^[\w-][\w.:@-]{0,127}$/.test(value)) return value;
  throw badRequest(`'${name}' must be an id of at most 128 letters, digits and . : @ _ -`);
};

/** An id that only goes back to the client, or is looked up among those that there are. */
export const isShort = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= 512;

/** The messages of a request. */
export const messagesOf = (body: unknown): readonly unknown[] => {
  const messages = fieldOf(body, 'messages');
  if (Array.isArray(messages)) return messages;
  throw badRequest("'messages' must be a list");
};

/** The text of a message that is made of parts. Parts that are no text are refused, so that none is passed over in silence. */
export const textOfParts = (parts: unknown): string => {
  if (!Array.isArray(parts)) throw badRequest('the last message must have a list of parts');
  return parts
    .map((part: unknown) => {
      const text = fieldOf(part, 'type') === 'text' ? fieldOf(part, 'text') : undefined;
      if (typeof text !== 'string')
        throw badRequest('the last message may have parts of text only');
      return text;
    })
    .join('');
};

/** A text that says something. */
export const saying = (text: unknown): string => {
  if (typeof text === 'string' && text.trim() !== '') return text;
  throw badRequest('the last message has no text');
};

/** The result of a suspended tool call that a client brings: its id in its own call, and what the tool gave. */
export type ClientResult = readonly [toolUseId: string, output: unknown];

/** The output of a tool that has failed in the client. */
export const failedInClient = (...said: readonly unknown[]): unknown => {
  const text = said.filter((it) => typeof it === 'string').join('\n');
  return toolOutput({ content: text.trim() || 'The tool failed.', isError: true });
};

/** What results are to a call: the input that resumes it, and their ids for the stream. */
export const resumingBy = (
  results: readonly ClientResult[],
): { readonly input: Input; readonly clientResults: readonly string[] } => {
  if (results.length === 0) {
    throw badRequest(
      "the last message must be the user's, or bring the result of a suspended tool",
    );
  }
  return {
    input: toolResults(Object.fromEntries(results)),
    clientResults: results.map(([toolUseId]) => toolUseId),
  };
};
