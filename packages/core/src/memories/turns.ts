import type { Message } from '../message.js';

/**
 * Finds where turns begin: at each message of a user's that is not said in the middle of one. In the middle is what the same call was asked with
 * behind another message, and what it was told while its tools ran. Of messages with ids of another kind, it is whatever follows a
 * user or a tool.
 */
export const turnStarts = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap((message, index) =>
    message.role === 'user' && !isSaidWithin(messages[index - 1], message) ? [index] : [],
  );

/** Finds where the last turns begin. What waits for its result is never left behind. */
export const lastTurnsFrom = (messages: readonly Message[], turns: number): number => {
  const starts = turnStarts(messages);
  const from = starts.length > turns ? starts.at(-turns) : undefined;
  return from === undefined ? 0 : beforeWaiting(messages, starts, from);
};

/** Moves a cut to the first place before what waits for its result. */
export const beforeWaiting = (
  messages: readonly Message[],
  places: readonly number[],
  cut: number,
): number => {
  const waiting = messages.findIndex(isWaiting);
  return waiting === -1 || waiting >= cut
    ? cut
    : (places.findLast((place) => place <= waiting) ?? 0);
};

export const isWaiting = (message: Message): boolean =>
  message.role === 'tool' && message.content.some(({ suspended }) => suspended !== undefined);

const isSaidWithin = (before: Message | undefined, { id }: Message): boolean => {
  if (before === undefined || before.role === 'assistant') return false;
  const place = id.lastIndexOf('/input/');
  return place === -1 || before.id.startsWith(id.slice(0, place + 1));
};
