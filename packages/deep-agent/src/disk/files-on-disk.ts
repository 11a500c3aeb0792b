import { createSemaphore } from 'millrace/traffic';
import {
  type ConfinedFiles,
  confinedFiles,
  type ConfinedFilesOptions,
} from '@millrace/tools/files';
import { defer, finalize, from, map, type Observable } from 'rxjs';
import { checkedFiles, type FileSystem } from '../file-system.js';

/** Options of `filesOnDisk`. */
export type FilesOnDiskOptions = ConfinedFilesOptions;

/**
 * Creates a file system in an existing directory, with the guards of `fileTools`: nothing leaves it by `..` or a symbolic link,
 * names that look like secrets are refused, and files are replaced in one step. Writes wait for each other; those of other
 * processes, or of another file system in the same directory, may be lost in between.
 * Other programs may run what agents write, such as the tasks of an editor: give them a directory of their own. Node only.
 */
export const filesOnDisk = (directory: string, options: FilesOnDiskOptions = {}): FileSystem =>
  filesIn(confinedFiles(directory, options), options.maxBytes);

/** A file system in an open directory. */
export const filesIn = (files: ConfinedFiles, maxBytes = 2_000_000): FileSystem => {
  const turns = createSemaphore({ max: 1, maxQueue: 1_000, what: 'writes' });
  return checkedFiles(
    {
      list$: () =>
        untilLeft$((signal) => files.list(signal)).pipe(
          map((entries) => entries.map(({ path }) => path).sort()),
        ),
      read$: (path) => untilLeft$((signal) => files.read(path, signal)),
      write$: (path, content) => {
        const change = typeof content === 'string' ? () => content : content;
        return turns.hold$(() => untilLeft$((signal) => files.write(path, change, signal)));
      },
    },
    maxBytes,
  );
};

/** Aborts the work when it is unsubscribed. */
export const untilLeft$ = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  defer(() => {
    const controller = new AbortController();
    return from(work(controller.signal)).pipe(finalize(() => controller.abort()));
  });
