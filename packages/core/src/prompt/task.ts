import type { Message } from '../message.js';

/**
 * Tells which messages of a request are the task: those that the call was asked with, what was said to it since, and what was found for it, by their ids. A call
 * that only brings results goes on with what was asked last before it.
 */
export const taskOf = (
  messages: readonly Message[],
  callId: string,
): ((message: Message) => boolean) => {
  const isFound = ({ id }: Message): boolean => id === `${callId}/context`;
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  if (messages.some((message) => message.role !== 'tool' && isOwn(message))) {
    return (message) => isOwn(message) || isFound(message);
  }
  // What else bears the id of the call is feedback.
  const asked = messages.findLast(
    ({ role, id }) => role === 'user' && !id.startsWith(`${callId}/`),
  );
  return (message) => message === asked || isFound(message);
};
