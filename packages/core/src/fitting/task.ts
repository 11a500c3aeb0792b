import type { Message } from '../message.js';

/**
 * Tells which messages of a request are the task: those that the call was asked with, and what was said to it since, by their ids. A call
 * that only brings results goes on with what was asked last before it.
 */
export const taskOf = (
  messages: readonly Message[],
  callId: string,
): ((message: Message) => boolean) => {
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  if (messages.some((message) => message.role !== 'tool' && isOwn(message))) return isOwn;
  // What else bears the id of the call is feedback.
  const asked = messages.findLast(
    ({ role, id }) => role === 'user' && !id.startsWith(`${callId}/`),
  );
  return (message) => message === asked;
};
