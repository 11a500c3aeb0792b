import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isTaken, isThere, namesIn, whenGone } from './failure.js';
import { lifeOf, newHolder } from './holder.js';
import { makeDirectory, syncDirectory } from './make-directory.js';

/** A place beside what counts, where directories are made before they appear, and go to when they are removed. */
export interface Aside {
  /** Has a directory appear with all that is put in it, or not at all, where there is one that is not empty: false. */
  make(path: string, fill: (made: string) => Promise<unknown>): Promise<boolean>;
  /** Removes a directory, which goes at once, and then what is in it. One that is not there is no error. */
  discard(path: string): Promise<void>;
}

/** Makes that place in a directory, unless `check` throws. What a crash has left in it goes before it is first used. */
export const createAside = (root: string, check?: () => void): Aside => {
  const place = join(root, '.aside');
  const state: { swept?: Promise<unknown> } = {};
  const ready = async (): Promise<void> => {
    check?.();
    await makeDirectory(place);
    // What is left behind costs room, and nothing else.
    await (state.swept ??= sweep(place).catch(() => undefined));
  };
  return {
    make: async (path, fill) => {
      await ready();
      const made = join(place, newHolder());
      try {
        await mkdir(made, { mode: 0o700 });
        await fill(made);
        await rename(made, path);
        return true;
      } catch (error) {
        await rm(made, { recursive: true, force: true });
        if (isTaken(error)) return false;
        throw error;
      }
    },
    discard: async (path) => {
      if (!(await isThere(path))) return;
      await ready();
      const away = join(place, newHolder());
      if (!(await isRenamed(path, away))) return;
      await syncDirectory(dirname(path));
      await rm(away, { recursive: true, force: true, maxRetries: 3 });
    },
  };
};

/** Renames a file or a directory: false where there is none. */
export const isRenamed = (from: string, to: string): Promise<boolean> =>
  whenGone(
    rename(from, to).then(() => true),
    false,
  );

/** Removes what a process was making or removing that is gone, or may be, after so long a time. */
const sweep = async (place: string): Promise<unknown> => {
  const names = await namesIn(place);
  return Promise.allSettled(
    names.map(async (name) => {
      const path = join(place, name);
      if (await isLeft(name, path)) await rm(path, { recursive: true, force: true });
    }),
  );
};

const longMs = 3_600_000;

/** Tells whether nobody goes on with what `newHolder` has named. */
export const isLeft = async (name: string, path: string): Promise<boolean> => {
  if (lifeOf(name) === 'gone') return true;
  return lifeOf(name) === 'unknown' && Date.now() - (await stat(path)).mtimeMs > longMs;
};
