import { open } from 'node:fs/promises';
import { join } from 'node:path';

/** Milliseconds that each of so many small writes took to be on the disk (`fdatasync`), one after the other: what no store can do without. */
export const timeSyncs = async (folder: string, count: number): Promise<readonly number[]> => {
  const file = await open(join(folder, 'syncs'), 'a');
  const times: number[] = [];
  for (let written = 0; written < count; written += 1) {
    const startedAt = performance.now();
    await file.appendFile('x'.repeat(400));
    await file.datasync();
    times.push(performance.now() - startedAt);
  }
  await file.close();
  return times;
};
