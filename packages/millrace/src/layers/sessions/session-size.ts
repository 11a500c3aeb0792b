import { isPlain } from '../../values/plain-json.js';
import type { Entry } from '../../values/message-tree.js';

/** About the memory that messages take, in bytes. */
export const sizeOfEntries = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { message }) => sum + sizeOf(message), 0);

/** An object or a list with its fields, in addition to what they hold. */
const objectBytes = 64;

const sizeOf = (root: unknown): number => {
  const seen = new Set<object>();
  const open: unknown[] = [root];
  let size = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') size += sizeOfText(next);
    else if (ArrayBuffer.isView(next)) size += next.byteLength;
    else if (isPlain(next) && !seen.has(next)) {
      seen.add(next);
      size += objectBytes;
      for (const part of Object.values(next)) if (part !== undefined) open.push(part);
    }
  }
  return size;
};

/** Strings of Latin-1 take a byte for each character. */
const sizeOfText = (text: string): number => (isWide.test(text) ? 2 : 1) * text.length;

const isWide = /[\u0100-\uffff]/;
