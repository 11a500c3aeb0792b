import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { checkOptions, isFunction, type Rule, wholeNumber } from 'millrace/values';
import { checkText, replaceFile, textAt } from './change-files.js';
import { confineNewPath, confinePath, isMissing } from './confined-path.js';
import { explainFailure } from './explain-failure.js';
import { entriesBelow } from './find-files.js';
import { looksSecret } from './looks-secret.js';
import { realDirectory } from './read-file.js';

/** Options of `confinedFiles`. */
export interface ConfinedFilesOptions {
  /** Whether to refuse a path, which is relative to the root and separated by `/`. Default: `looksSecret`. */
  readonly isHidden?: ((path: string) => boolean) | undefined;
  /** The maximum size of a file, in bytes. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
}

/** A file in a list. */
export interface ConfinedEntry {
  /** Relative to the root, separated by `/`. */
  readonly path: string;
  /** Changes whenever the file does. */
  readonly stamp: string;
  /** Its size. */
  readonly bytes: number;
}

/** The text files below one directory. Everything rejects with a sentence that a model may see. */
export interface ConfinedFiles {
  /** The real path of the directory. */
  readonly root: string;
  /** Up to 10,000 files, sorted by directory and name. Symbolic links are left out. */
  list(signal: AbortSignal): Promise<readonly ConfinedEntry[]>;
  /** Resolves to undefined if there is no such file. */
  read(path: string, signal: AbortSignal): Promise<string | undefined>;
  /** Replaces the text of a file in one step, and creates directories. `change` gets its present text. */
  write(
    path: string,
    change: (before: string | undefined) => string,
    signal: AbortSignal,
  ): Promise<void>;
}

const maxFiles = 10_000;

/**
 * Opens the text files below a directory, with the guards of `fileTools`: paths that leave it, also through symbolic
 * links, that look like secrets or belong to a store are refused, and so are files that are not regular, not UTF-8 text
 * or too large. Throws a `config` error if there is no such directory.
 */
export const confinedFiles = (root: string, options: ConfinedFilesOptions = {}): ConfinedFiles => {
  checkOptions('confinedFiles()', options, rules);
  const { isHidden = looksSecret, maxBytes = 2_000_000 } = options;
  const confinement = { root: realDirectory(root, 'confinedFiles()'), isHidden };
  return {
    root: confinement.root,
    list: async (signal) => {
      const found: ConfinedEntry[] = [];
      const place = await confinePath('.', confinement);
      for await (const entry of entriesBelow(place, { isHidden, depth: Infinity, ending: '' })) {
        signal.throwIfAborted();
        const file = entry.isDirectory ? undefined : await fileAt(join(place.real, entry.shown));
        if (file !== undefined && found.push({ path: entry.shown, ...file }) === maxFiles) break;
      }
      return found;
    },
    read: async (path, signal) => {
      try {
        return await textAt(await confinePath(path, confinement), maxBytes, signal);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw await explainFailure(error, path, confinement);
      }
    },
    write: async (path, change, signal) => {
      try {
        const place = await confineNewPath(path, confinement);
        const before = await textAt(place, maxBytes, signal);
        const after = change(before);
        checkText(after, maxBytes);
        signal.throwIfAborted();
        if (after !== before) await replaceFile({ place, before, after });
      } catch (error) {
        throw await explainFailure(error, path, confinement, 'written');
      }
    },
  };
};

/** Undefined for what is not a regular file, or has vanished. */
const fileAt = async (real: string): Promise<Omit<ConfinedEntry, 'path'> | undefined> => {
  try {
    const found = await lstat(real, { bigint: true });
    const { size, mtimeNs, ctimeNs } = found;
    return found.isFile()
      ? { stamp: `${size} ${mtimeNs} ${ctimeNs}`, bytes: Number(size) }
      : undefined;
  } catch {
    return undefined;
  }
};

const rules: Readonly<Record<keyof ConfinedFilesOptions, Rule>> = {
  isHidden: isFunction,
  maxBytes: wholeNumber(1),
};
