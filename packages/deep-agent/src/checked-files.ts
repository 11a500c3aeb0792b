import { createSemaphore, type Semaphore } from 'millrace/traffic';
import { concatMap, defer, finalize, type Observable, tap } from 'rxjs';
import { bytesOf, type FileSizes, tooLarge } from './file-sizes.js';
import { type FileContent, type FileSystem, toPath } from './file-system.js';

/** Text as every file system can store it: halves of characters and NUL become U+FFFD. */
const toText = (text: string): string => text.replace(/[\p{Cs}\0]/gu, '\ufffd');

/** Limits of the writes of a model: to one file, and to all of them, up to 10,000. */
export interface FileLimits {
  /** The maximum size of a file, in bytes. */
  readonly maxBytes: number;
  /** The maximum size of all files, in bytes. */
  readonly maxTotalBytes: number;
}

/**
 * Checks paths, content and sizes before a file system gets them. Writes of one file wait for each other; those of others do not,
 * and reserve what they take of the limit.
 */
export const checkedFiles = (
  files: FileSystem,
  limits: FileLimits,
  sizes: FileSizes,
): FileSystem => {
  const inTurn = turnsByPath();
  const at$ = <T>(given: string, use: (path: string) => Observable<T>): Observable<T> =>
    defer(() => use(toPath(given)));
  const counted$ = (path: string, content: FileContent, key: string): Observable<unknown> => {
    let reserved: number | undefined;
    const checkedContent = (before: string | undefined): string => {
      if (reserved !== undefined) sizes.release(path, reserved);
      reserved = undefined;
      const left = sizes.leftFor(path, before, limits.maxTotalBytes);
      const text = toContent(content, before, { ...limits, left });
      reserved = bytesOf(text);
      sizes.reserve(path, reserved);
      return text;
    };
    return files.write$(path, checkedContent, key).pipe(
      tap({
        complete: () => {
          if (reserved !== undefined) sizes.settle(path, reserved);
          reserved = undefined;
        },
      }),
      // Whether a write that failed or was left has happened is not known.
      finalize(() => {
        if (reserved !== undefined) sizes.forget();
      }),
    );
  };
  return {
    ...files,
    read$: (path) => at$(path, (checked) => files.read$(checked)),
    write$: (path, content, key) =>
      at$(path, (checked) =>
        inTurn(checked, () =>
          sizes.known$().pipe(concatMap(() => counted$(checked, content, key))),
        ),
      ),
  };
};

/** Lets work on one path wait for the work before it. */
const turnsByPath = () => {
  const turns = new Map<string, Semaphore>();
  return <T>(path: string, work: () => Observable<T>): Observable<T> => {
    const own = turns.get(path) ?? createSemaphore({ max: 1, maxQueue: 1_000, what: 'writes' });
    turns.set(path, own);
    return own.hold$(work).pipe(
      finalize(() => {
        if (own.held === 0 && own.waiting === 0) turns.delete(path);
      }),
    );
  };
};

/** The new text of a file. Throws a `tooLarge` error with a sentence for the model. */
const toContent = (
  content: FileContent,
  before: string | undefined,
  { maxBytes, maxTotalBytes, left }: FileLimits & { readonly left: number },
): string => {
  const text = toText(typeof content === 'string' ? content : content(before));
  const bytes = bytesOf(text);
  if (bytes > maxBytes) {
    throw tooLarge(
      `The file would have ${bytes} bytes, and the limit is ${maxBytes}. Write less, or several files.`,
    );
  }
  if (bytes > left) {
    throw tooLarge(
      `All files together would have more than ${maxTotalBytes} bytes, which is their limit. Write up to ${left} bytes, or first shorten files that you no longer need.`,
    );
  }
  return text;
};
