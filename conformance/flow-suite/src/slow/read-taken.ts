import { isRecord } from 'millrace/values';
import type { Taken } from './take-slowly.js';

/** Reads what a process says that has taken an answer, or throws. */
export const readTaken = (said: unknown): Taken => {
  if (isTaken(said)) return said;
  throw new Error('The process that took the answer says something else than what it got.');
};

const isTaken = (value: unknown): value is Taken =>
  isRecord(value) &&
  numbers.every((key) => typeof value[key] === 'number') &&
  typeof value['digest'] === 'string' &&
  Array.isArray(value['others']) &&
  Array.isArray(value['marks']);

const numbers = [
  'events',
  'taken',
  'waiting',
  'read',
  'heldMb',
  'rssMb',
  'ms',
] satisfies (keyof Taken)[];
