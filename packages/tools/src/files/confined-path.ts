import { lstat, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { storeMarker } from 'millrace/values';
import { anchored } from './anchored.js';
import { isBesideDatabase, isDatabase, isUnlisted, storeRefusal } from './store-database.js';

/** A validated path. It is below the root, and so is its target. */
export interface ConfinedPath {
  /** The real path, without symbolic links. */
  readonly real: string;
  /** Relative to the root, separated by `/`; `''` for the root itself. */
  readonly shown: string;
}

export interface Confinement {
  /** The real path of the directory that paths must not leave. */
  readonly root: string;
  /** Whether to refuse a path, which is relative to the root and separated by `/`. */
  readonly isHidden: (path: string) => boolean;
}

const maxLength = 1_024;

/**
 * Resolves a path below the root. Throws an error with a full sentence if it leaves the root (`..`, an absolute path, a
 * symbolic link), is hidden, or is not a valid path; throws the error `ENOENT` of the file system if it does not exist.
 */
export const confinePath = async (
  path: string,
  confinement: Confinement,
): Promise<ConfinedPath> => {
  if (path.length > maxLength) {
    throw new Error(`The path is longer than ${maxLength} characters.`);
  }
  if (path.includes('\0')) throw new Error('The path contains a NUL character.');
  const resolved = resolve(confinement.root, path);
  check(path, resolved, confinement);
  try {
    const real = await realpath(resolved);
    const shown = check(path, real, confinement);
    await refuseStore(path, real);
    return { real, shown };
  } catch (error) {
    const ancestor = await nearestAncestor(resolved, confinement.root);
    check(path, ancestor, confinement);
    throw error;
  }
};

/** Throws an error if a file or directory, which need not exist, belongs to a store of this or another process. */
export const refuseStore = async (path: string, real: string): Promise<void> => {
  if ((await isDatabase(real)) || (await isInStore(real))) throw storeRefusal(path);
};

/** Also looks at the directories above it, also above the root. */
const isInStore = async (real: string): Promise<boolean> => {
  if ((await isStore(real)) || (await isBesideDatabase(real))) return true;
  const above = dirname(real);
  return above !== real && isInStore(above);
};

/** Whether a store has marked a directory. Looks each time: any process may create one at any time. */
export const isStore = (directory: string): Promise<boolean> =>
  isThere(join(directory, storeMarker));

/**
 * Resolves the path of a file to write, which need not exist, nor its directories. Throws the same errors as
 * `confinePath`.
 */
export const confineNewPath = async (
  path: string,
  confinement: Confinement,
): Promise<ConfinedPath> => {
  if (/\p{Cc}/u.test(path)) throw new Error('The path contains a control character.');
  try {
    return await confinePath(path, confinement);
  } catch (error) {
    if (!isMissing(error)) throw error;
    const resolved = resolve(confinement.root, path);
    // A dangling link does not exist for `realpath`, but is there.
    if (await isThere(resolved)) {
      throw new Error(`'${path}' is not a regular file.`, { cause: error });
    }
    const parent = await confineNewPath(dirname(path), confinement);
    const real = join(parent.real, basename(resolved));
    if (await isBesideDatabase(real)) throw storeRefusal(path);
    return { real, shown: check(path, real, confinement) };
  }
};

export const isMissing = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';

export const isThere = async (path: string): Promise<boolean> => {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
};

/** The nearest existing directory above a path. Errors must not reveal either what exists outside the root. */
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
      `'${path}' is outside the root directory. Use a path below it, such as 'README.md'.`,
    );
  }
  const shown = below.split(sep).join('/');
  if (isHidden(shown)) throw new Error(`'${path}' must not be used: it looks like a secret.`);
  // Some file systems ignore case.
  if (basename(place).toLowerCase() === storeMarker) throw storeRefusal(path);
  return shown;
};

/** Whether a name could look like several lines of a list. */
export const isUnprintable = (name: string): boolean => /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name);

const maxNames = 200;

/** Lists the visible entries of a directory, sorted by name. Directories end with `/`. */
export const namesIn = async (
  { real, shown }: ConfinedPath,
  isHidden: (path: string) => boolean,
): Promise<readonly string[]> => {
  const entries = await anchored(real, (directory) => readdir(directory, { withFileTypes: true }));
  const names: string[] = [];
  for (const entry of entries) {
    const place = join(real, entry.name);
    if (isUnprintable(entry.name)) continue;
    if (isHidden(shown === '' ? entry.name : `${shown}/${entry.name}`)) continue;
    const isOfStore = entry.isDirectory() ? isStore : isUnlisted;
    if (!(await isOfStore(place))) names.push(entry.isDirectory() ? `${entry.name}/` : entry.name);
  }
  return names.sort();
};

/** Formats the list of a directory for a model. */
export const listingOf = ({ shown }: ConfinedPath, names: readonly string[]): string => {
  const directory = shown === '' ? 'The root directory' : `'${shown}' is a directory. It`;
  if (names.length === 0) return `${directory} contains nothing that can be read.`;
  const more = names.length > maxNames ? [`… and ${names.length - maxNames} more`] : [];
  return [`${directory} contains:`, ...names.slice(0, maxNames), ...more].join('\n');
};
