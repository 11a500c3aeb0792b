import type { Entry, Message, MessageTree } from 'millrace';

/** The id of the call that a message belongs to. */
export const callOf = (messageId: string): string => {
  const end = messageId.indexOf('/');
  return end === -1 ? messageId : messageId.slice(0, end);
};

/**
 * Returns the prefix of the ids of all calls that answer a question with this client id. Every process finds the calls by
 * it, even after a restart. The chance that two questions of one conversation share a prefix is one in 10^14.
 */
export const markOf = (questionId: string): string =>
  [0x811c9dc5, 0x01000193]
    .map((seed) => fnv(questionId, seed).toString(16).padStart(8, '0'))
    .join('')
    .slice(0, 12);

/** The FNV-1a hash of 32 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
const fnv = (text: string, seed: number): number => {
  let hash = seed;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
};

/**
 * The question that a call answers: this message, or the call's first one. A call that brings tool results answers the
 * question of the call before it.
 */
export const questionIn = (
  { entries }: MessageTree,
  callId: string,
  messageId?: string,
): Entry | undefined => {
  const own = entries.filter(({ message }) => callOf(message.id) === callId);
  const isUser = ({ message }: Entry): boolean => message.role === 'user';
  const named = own.find((entry) => isUser(entry) && entry.message.id === messageId);
  let before = named ?? own.find(isUser) ?? own[0];
  while (before !== undefined && !isUser(before)) {
    const { after } = before;
    before = entries.find(({ message }) => message.id === after);
  }
  return before;
};

/**
 * The last message of the answer of a call: calls that bring results for its tools continue it. `undefined` if the call has no
 * message. `isOwn`: results that a client brings begin another answer.
 */
export const answerEnd = (tree: MessageTree, callId: string, isOwn = false): string | undefined => {
  const { entries } = tree;
  const last = entries.findLast(({ message }) => callOf(message.id) === callId)?.message.id;
  if (last === undefined) return undefined;
  const next = entries.findLast(
    ({ message, after }) => after === last && isResult(message) && !(isOwn && isOfClient(message)),
  );
  return next === undefined ? last : answerEnd(tree, callOf(next.message.id), isOwn);
};

const isResult = ({ role }: Message): boolean => role === 'tool';

const isOfClient = (message: Message): boolean =>
  message.role === 'tool' && message.content.some(({ from }) => from === 'client');
