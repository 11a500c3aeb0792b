import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';

/** A path that has been checked: it is below the root, and so is what it leads to. */
export interface ConfinedPath {
  /** Where it really is, with no symbolic link on the way. */
  readonly real: string;
  /** Relative to the root, with `/` between its parts; empty for the root itself. */
  readonly shown: string;
}

/** What paths are confined to. */
export interface Confinement {
  /** The directory that no path leads out of, itself a real path. */
  readonly root: string;
  /** Refuses a path, relative to the root and with `/` between its parts. */
  readonly isHidden: (path: string) => boolean;
}

/** Characters that a path may have. */
const longestPath = 1_024;

/**
 * Finds where a path leads from the root. Throws a sentence where it leads out (`..`, an absolute path, a
 * symbolic link), is hidden, or is no path. One that does not exist is the file system's error `ENOENT`.
 */
export const confinePath = async (
  path: string,
  confinement: Confinement,
): Promise<ConfinedPath> => {
  if (path.length > longestPath) {
    throw new Error(`That path is longer than ${longestPath} characters.`);
  }
  if (path.includes('\0')) throw new Error('That path holds a NUL character.');
  const asked = resolve(confinement.root, path);
  check(path, asked, confinement);
  try {
    const real = await realpath(asked);
    return { real, shown: check(path, real, confinement) };
  } catch (error) {
    const ancestor = await nearestAncestor(asked, confinement.root);
    check(path, ancestor, confinement);
    throw error;
  }
};

/** The nearest directory that exists on the way to a path. What is missing outside the root must not be told either. */
const nearestAncestor = async (path: string, root: string): Promise<string> => {
  const parent = dirname(path);
  if (path === root || parent === path) return root;
  try {
    return await realpath(parent);
  } catch {
    return nearestAncestor(parent, root);
  }
};

const check = (path: string, place: string, { root, isHidden }: Confinement): string => {
  const below = relative(root, place);
  if (below === '..' || below.startsWith(`..${sep}`) || isAbsolute(below)) {
    throw new Error(
      `'${path}' is outside the directory that may be read. Give a path below it, such as 'README.md'.`,
    );
  }
  const shown = below.split(sep).join('/');
  if (isHidden(shown)) throw new Error(`'${path}' may not be read: it looks like a secret.`);
  return shown;
};
