import { type Message, MillraceError } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/adapter';

/** What is kept of a message beside its place. */
export interface KeptMessage {
  readonly id: string;
  /** JSON. */
  readonly text: string;
}

/** Those of the messages whose id is not known, each once. */
export const freshOf = (
  messages: readonly Message[],
  isKnown: (id: string) => boolean,
): readonly KeptMessage[] => {
  const added = new Set<string>();
  return messages
    .filter(({ id }) => !isKnown(id) && !added.has(id) && added.add(id))
    .map((message) => ({ id: message.id, text: JSON.stringify(message) }));
};

/** The error of who adds to a conversation that has gone on since it was loaded. */
export const goneOn = (sessionId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The conversation of the session '${sessionId.slice(0, 100)}' has gone on elsewhere since it was loaded: nothing was added. ` +
      'Have one process at a time answer a session, or ask again.',
    { retryable: true },
  );

/** The message that a text holds. */
export const messageIn = (text: string): Message => {
  const value = parsedJson(text);
  if (isMessage(value)) return value;
  throw new MillraceError('invalidState', 'What is stored as a message is none.');
};

/** What was written here is whole: what else is in it is what it was. */
const isMessage = (value: unknown): value is Message =>
  isRecord(value) && typeof value['id'] === 'string' && Array.isArray(value['content']);
