import { createHash } from 'node:crypto';

/** The delta at a place of a long answer, of so many bytes. Each is another, so that none can stand for a lost one. */
export const deltaAt = (index: number, bytes: number): string => `${index} `.padEnd(bytes, 'x');

/** The digest of the whole text of a long answer. */
export const digestOf = (deltas: number, bytes: number): string => {
  const hash = createHash('sha256');
  for (let index = 0; index < deltas; index += 1) hash.update(deltaAt(index, bytes));
  return hash.digest('hex');
};
