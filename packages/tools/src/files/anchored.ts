import { constants } from 'node:fs';
import { open, readlink } from 'node:fs/promises';
import { platform } from 'node:process';

/**
 * Opens a directory, and passes a path that leads to it even if another process moves it or replaces it by a symbolic
 * link. Throws an error if that has happened since `real` was resolved.
 *
 * Only Linux has such paths (`/proc/self/fd`). Elsewhere, it passes `real`: a process that replaces a directory in the
 * same moment can redirect the access.
 */
export const anchored = async <Result>(
  real: string,
  use: (directory: string) => Promise<Result>,
): Promise<Result> => {
  if (platform !== 'linux') return use(real);
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    const anchor = `/proc/self/fd/${handle.fd}`;
    if ((await readlink(anchor)) !== real) {
      throw new Error('The directory was replaced in the meantime. Try again.');
    }
    return await use(anchor);
  } finally {
    await handle.close();
  }
};
