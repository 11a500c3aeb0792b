import { checkOptions, wholeNumber } from 'millrace/values';
import {
  type ConfinedFiles,
  confinedFiles,
  type ConfinedFilesOptions,
} from '@millrace/tools/files';
import { defer, finalize, from, map, type Observable } from 'rxjs';
import { checkedFiles } from '../checked-files.js';
import { type FileSizes, fileSizes } from '../file-sizes.js';
import type { FileSystem } from '../file-system.js';

/** Options of `filesOnDisk`. */
export interface FilesOnDiskOptions extends ConfinedFilesOptions {
  /**
   * The maximum size of all files, in bytes. It includes files that existed before, and those that code of a sandbox writes. The first
   * write of this object, and the first one after code, lists all files: what other programs write in between does not count.
   * New files are refused if there are 10,000, and in `node_modules`, which is not listed. Default: 1,000,000,000.
   */
  readonly maxTotalBytes?: number | undefined;
}

/**
 * Creates a file system in an existing directory, with the guards of `fileTools`: nothing leaves it by `..` or a symbolic link,
 * names that look like secrets are refused, and files are replaced in one step. Writes of one file wait for each other; those of
 * other processes, or of another file system in the same directory, may be lost in between.
 * Other programs may run what agents write, such as the tasks of an editor: give them a directory of their own. Node only.
 */
export const filesOnDisk = (directory: string, options: FilesOnDiskOptions = {}): FileSystem => {
  const { maxTotalBytes, ...confined } = options;
  checkOptions('filesOnDisk()', { maxTotalBytes }, { maxTotalBytes: wholeNumber(1) });
  return filesIn(confinedFiles(directory, confined), { ...confined, maxTotalBytes });
};

/** A file system in an open directory. */
export const filesIn = (
  files: ConfinedFiles,
  {
    maxBytes = 2_000_000,
    maxTotalBytes = 1_000_000_000,
  }: Pick<FilesOnDiskOptions, 'maxBytes' | 'maxTotalBytes'>,
  sizes = sizesIn(files),
): FileSystem => {
  const entries$ = untilLeft$((signal) => files.list(signal));
  return checkedFiles(
    {
      list$: () => entries$.pipe(map((entries) => entries.map(({ path }) => path).sort())),
      read$: (path) => untilLeft$((signal) => files.read(path, signal)),
      write$: (path, content) => {
        if (path.split('/').includes('node_modules')) throw unlisted();
        const change = typeof content === 'string' ? () => content : content;
        return untilLeft$((signal) => files.write(path, change, signal));
      },
    },
    { maxBytes, maxTotalBytes },
    sizes,
  );
};

/** The sizes of the files in an open directory. */
export const sizesIn = (files: ConfinedFiles): FileSizes =>
  fileSizes(
    untilLeft$((signal) => files.list(signal)).pipe(
      map((entries) => new Map(entries.map(({ path, bytes }) => [path, bytes]))),
    ),
  );

const unlisted = (): Error =>
  new Error(
    "Files in 'node_modules' are not listed, so none is written there. Use another directory.",
  );

/** Aborts the work when it is unsubscribed. */
export const untilLeft$ = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  defer(() => {
    const controller = new AbortController();
    return from(work(controller.signal)).pipe(finalize(() => controller.abort()));
  });
