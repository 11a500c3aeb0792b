import { isRecord } from './json.js';
import type { Message } from './message.js';

/** Tells whether a value from outside has the shape of a message, as far as whoever reads one needs it. */
export const isMessage = (value: unknown): value is Message =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  ['user', 'assistant', 'tool'].some((role) => role === value['role']) &&
  Array.isArray(value['content']) &&
  value['content'].every((block) => isRecord(block) && typeof block['type'] === 'string');
