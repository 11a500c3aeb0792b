import type { Tool } from 'millrace';
import { checkOptions, isFunction, isText, type Rule, wholeNumber } from 'millrace/values';
import { editFile, type FileApprover, writeFile } from './change-files.js';
import { listFiles, searchFiles } from './find-files.js';
import { createChangeLimit } from './limit-changes.js';
import { looksSecret } from './looks-secret.js';
import { readFile, realDirectory } from './read-file.js';

/** Options of `fileTools`. */
export interface FileToolsOptions {
  /** The directory that paths must not leave. Default: the working directory at the creation of the tools. */
  readonly root?: string | undefined;
  /**
   * Decides on each change of a file, and sees it as a diff. `true` allows all changes, `false` denies them. Default:
   * there are no tools that change files.
   */
  readonly approve?: boolean | FileApprover | undefined;
  /** Whether to refuse a path, which is relative to the root and separated by `/`. Default: `looksSecret`. */
  readonly isHidden?: ((path: string) => boolean) | undefined;
  /** The maximum size of a file, in bytes. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
  /**
   * How many bytes the tools may add to the directory. They may also create up to 10,000 files. Both count from the creation of the
   * tools; files that were removed since do not. Default: 1,000,000,000.
   */
  readonly maxAddedBytes?: number | undefined;
}

/**
 * Creates the tools `list_files`, `read_file` and `search_files` for one directory, and, with the option `approve`,
 * `write_file` and `edit_file`.
 *
 * They refuse paths that leave the directory, also through symbolic links, paths that look like secrets, and files that
 * are not regular, not UTF-8 text or too large. A change that an approver has allowed is refused if the file has been
 * changed since. Files are replaced in one step and keep their mode.
 */
export const fileTools = (options: FileToolsOptions = {}): readonly Tool[] => {
  checkOptions('fileTools()', options, rules);
  const { approve, isHidden = looksSecret, maxBytes = 2_000_000 } = options;
  const { maxAddedBytes = 1_000_000_000 } = options;
  const root = realDirectory(options.root ?? process.cwd(), 'fileTools()');
  const confinement = { root, isHidden };
  const reading = [
    listFiles(confinement),
    readFile({ root, isHidden, maxBytes }),
    searchFiles(confinement, maxBytes),
  ];
  if (approve === undefined) return reading;
  const limit = createChangeLimit(maxAddedBytes);
  const changing = { confinement, maxBytes, approve, limit };
  return [...reading, writeFile(changing), editFile(changing)];
};

const rules: Readonly<Record<keyof FileToolsOptions, Rule>> = {
  root: isText,
  approve: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'true, false or an approver function',
  ],
  isHidden: isFunction,
  maxBytes: wholeNumber(1),
  maxAddedBytes: wholeNumber(1),
};
