import { type Message, MillraceError } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/values';

/** A message as it is stored. */
export interface StoredMessage {
  readonly id: string;
  /** JSON. */
  readonly text: string;
}

/** The messages with unknown ids, without duplicates. */
export const newMessages = (
  messages: readonly Message[],
  isKnown: (id: string) => boolean,
): readonly StoredMessage[] => {
  const added = new Set<string>();
  return messages
    .filter(({ id }) => !isKnown(id) && !added.has(id) && added.add(id))
    .map((message) => ({ id: message.id, text: JSON.stringify(message) }));
};

export const conflict = (sessionId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The conversation of the session '${sessionId.slice(0, 100)}' has changed since it was loaded, so nothing was added. ` +
      'Let one process at a time answer a session, or retry.',
    { retryable: true },
  );

export const parseMessage = (text: string): Message => {
  const value = parsedJson(text);
  if (isMessage(value)) return value;
  throw new MillraceError('invalidState', 'A stored message is not valid.');
};

/** Checks only `id` and `content`, as this package wrote the rest. */
const isMessage = (value: unknown): value is Message =>
  isRecord(value) && typeof value['id'] === 'string' && Array.isArray(value['content']);
