import { isRecord } from 'millrace/values';
import type { Leaks } from './measure-leaks.js';

/** Reads what a process says that has looked for leaks, or throws. */
export const readLeaks = (said: unknown): Leaks => {
  if (isLeaks(said)) return said;
  throw new Error('The process that looked for leaks says something else than what it found.');
};

const isLeaks = (value: unknown): value is Leaks =>
  isRecord(value) &&
  typeof value['calls'] === 'number' &&
  typeof value['growthKb'] === 'number' &&
  lists.every((key) => Array.isArray(value[key])) &&
  counts.every((key) => isRecord(value[key]) && typeof value[key]['left'] === 'number');

const lists = ['resources', 'wrongs'] satisfies (keyof Leaks)[];
const counts = ['listeners', 'subscriptions', 'sessions'] satisfies (keyof Leaks)[];
