import { badMessageId, fieldOf, isShortId } from '../inbound.js';
import type { ClientMessage, ShownMessage } from './places.js';

/** A message that a client shows: one, or none if it is neither of the user nor an answer. Throws `invalidRequest` if it has no id. */
export const shownMessageIn = (
  message: unknown,
  read: (role: 'user' | 'assistant') => ClientMessage | undefined,
): readonly ShownMessage[] => {
  const id = fieldOf(message, 'id');
  const role = fieldOf(message, 'role');
  if (role !== 'user' && role !== 'assistant') return [];
  if (!isShortId(id)) throw badMessageId();
  return [{ id, read: () => read(role) }];
};
