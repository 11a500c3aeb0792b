import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** Has a lock be that of a process that is gone, as when its holder was killed, or has lost it to one who was. */
export const expireLock = async (path: string): Promise<void> => {
  const [name = ''] = await readdir(path);
  // No process has so great a number: https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html
  await rename(join(path, name), join(path, name.replace(/^(\w+)\.\d+/, '$1.9999999')));
};
