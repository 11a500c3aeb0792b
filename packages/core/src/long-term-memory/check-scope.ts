import { misuse } from '../errors.js';
import { isRecord } from '../json.js';
import type { MemoryScope } from './long-term-memory.js';

/** Refuses what names no user, so that it can never be taken for the scope of all. */
export const checkScope = (owner: string, scope: unknown): void => {
  if (isScope(scope)) return;
  throw misuse(
    `${owner} needs to know whose memory it is: { userId } or { userId, sessionId }, each a text that is not empty.`,
  );
};

export const isScope = (value: unknown): value is MemoryScope =>
  isRecord(value) &&
  isId(value['userId']) &&
  (value['sessionId'] === undefined || isId(value['sessionId']));

const isId = (value: unknown): boolean => typeof value === 'string' && value !== '';
