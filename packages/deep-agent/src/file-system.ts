import { MillraceError, type ToolContext } from 'millrace';
import { createSemaphore, type Semaphore } from 'millrace/traffic';
import { AsyncSubject, concatMap, defer, finalize, last, type Observable, share, tap } from 'rxjs';

/** The new text of a file, or a function that makes it from the present one, `undefined` if there is no such file. */
export type FileContent = string | ((before: string | undefined) => string);

/**
 * Text files that a deep agent works with, and shares with its sub-agents. Paths are relative, separated by `/`.
 * Everything is cold, emits once and completes. Errors are sentences for the model, without paths of the machine.
 * Test your own with `fileSystemContract` of `@millrace/deep-agent/testing`.
 */
export interface FileSystem {
  /** Emits the paths of all files, sorted. */
  list$(): Observable<readonly string[]>;
  /** Emits the text of a file, or `undefined` if there is no such file. */
  read$(path: string): Observable<string | undefined>;
  /**
   * Replaces the text of a file, or creates it, in one step. A function gets the text that it replaces: no write between is
   * lost, so it may be called again. `key` names the write: see `isIdempotent`.
   */
  write$(path: string, content: FileContent, key: string): Observable<unknown>;
  /** A write that is repeated with the same `key` has no effect. Default: false. */
  readonly isIdempotent?: boolean;
}

/** The result of code that ran in a sandbox. */
export interface SandboxResult {
  /** The output, for the model. */
  readonly text: string;
  /** Absent if the code was stopped, or could not start. */
  readonly exitCode?: number;
  /** The paths of files that it has created or changed, sorted. */
  readonly files: readonly string[];
}

/** A file system that also runs code, which sees its files. Test your own with `sandboxContract`. */
export interface Sandbox extends FileSystem {
  /** The language and what code may use, in a sentence or two for the model. */
  readonly language: string;
  /**
   * Runs code. Emits its output in pieces, then the result, and completes. Code that fails, takes too long or needs too
   * much memory is a result; an error means that the sandbox does not work. Unsubscribing ends the code immediately. Cold.
   */
  run$(code: string, context: ToolContext): Observable<string | SandboxResult>;
}

/** Whether a file system runs code. */
export const isSandbox = (files: FileSystem): files is Sandbox => 'run$' in files;

const maxPath = 1_024;
/** In bytes. Names are limited like this on disks. */
const maxName = 240;

/**
 * The path of a file in one form: relative, NFC. Throws an error with a sentence for the model if it may leave the root
 * (`..`), or has a backslash, a control character or a name that is too long.
 */
export const toPath = (given: string): string => {
  const path = given.normalize('NFC').replace(/^(?:\.?\/)+/u, '');
  const fail = (why: string): never => {
    throw new Error(`The path ${why}. Use a path such as 'notes/plan.md'.`);
  };
  if (path === '') return fail('is empty');
  if (path.length > maxPath) return fail(`is longer than ${maxPath} characters`);
  if (/[\p{Cc}\p{Cs}\\]/u.test(path)) return fail('has a backslash or a control character');
  for (const name of path.split('/')) {
    if (name === '..') return fail("leaves the root directory by '..'");
    if (name === '' || name === '.') return fail('has an empty part');
    if (new TextEncoder().encode(name).length > maxName) return fail('has a name that is too long');
  }
  return path;
};

/** Text as every file system can store it: halves of characters and NUL become U+FFFD. */
const toText = (text: string): string => text.replace(/[\p{Cs}\0]/gu, '\ufffd');

/** Limits of the writes of a model: to one file, and to all of them, up to 10,000. */
export interface FileLimits {
  /** The maximum size of a file, in bytes. */
  readonly maxBytes: number;
  /** The maximum size of all files, in bytes. */
  readonly maxTotalBytes: number;
}

/** Options of `fileSizes`. */
export interface FileSizesOptions {
  /** Whether it keeps all versions of a file, and each of them counts. Default: it keeps the last one. */
  readonly keepsVersions?: (() => boolean) | undefined;
}

/** The sizes of all files, which are listed once, and then corrected by each write. */
export interface FileSizes {
  /** Emits once when the sizes are known: it lists them the first time, and again after `forget`. Parallel ones share a list. Cold. */
  known$(): Observable<unknown>;
  /** The bytes that a write may take. Corrects what is known of the file by the text that it has, and checks the number of files. */
  leftFor(path: string, before: string | undefined, maxTotalBytes: number): number;
  /** Counts a write that begins, beside the version that it replaces: only the larger of both counts. */
  reserve(path: string, bytes: number): void;
  /** Counts a write that succeeded. */
  settle(path: string, bytes: number): void;
  /** Lists the files again before the next write: they may have changed, or a write may have happened or not. */
  forget(): void;
}

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Lists of files on disk end there, too. */
const maxFiles = 10_000;

/** Keeps the sizes of files. `all$` emits the size of each file in bytes, by its path, and completes; it may measure for long. */
export const fileSizes = (
  all$: Observable<ReadonlyMap<string, number>>,
  { keepsVersions = () => false }: FileSizesOptions = {},
): FileSizes => {
  const sizes = new Map<string, number>();
  /** The changes since the last list began. */
  const recent = new Map<string, number>();
  let total = 0;
  let listed$: Observable<unknown> | undefined;
  const set = (path: string, bytes: number | undefined): void => {
    total += (bytes ?? 0) - (sizes.get(path) ?? 0);
    if (bytes === undefined) sizes.delete(path);
    else sizes.set(path, bytes);
  };
  const change = (path: string, bytes: number): void => {
    recent.set(path, bytes);
    set(path, bytes);
  };
  const take = (listed: ReadonlyMap<string, number>): void => {
    for (const path of [...sizes.keys()]) if (!listed.has(path)) set(path, recent.get(path));
    for (const [path, bytes] of listed) set(path, recent.get(path) ?? bytes);
  };
  const list$ = defer(() => {
    recent.clear();
    return all$;
  }).pipe(last(), tap(take));
  return {
    known$: () =>
      (listed$ ??= list$.pipe(
        share({ connector: () => new AsyncSubject(), resetOnComplete: false }),
      )),
    leftFor: (path, before, maxTotalBytes) => {
      if (!keepsVersions()) set(path, before === undefined ? undefined : bytesOf(before));
      else if (!sizes.has(path) && before !== undefined) set(path, bytesOf(before));
      // A file that exists is known by now, also one that the list left out.
      if (!sizes.has(path) && sizes.size >= maxFiles) throw tooMany();
      const freed = keepsVersions() ? 0 : (sizes.get(path) ?? 0);
      return Math.max(maxTotalBytes - total + freed, freed);
    },
    reserve: (path, bytes) => {
      const before = sizes.get(path) ?? 0;
      change(path, keepsVersions() ? before + bytes : Math.max(before, bytes));
    },
    settle: (path, bytes) => {
      if (!keepsVersions()) change(path, bytes);
    },
    forget: () => {
      listed$ = undefined;
    },
  };
};

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

const tooLarge = (message: string): MillraceError => new MillraceError('tooLarge', message);

const tooMany = (): MillraceError =>
  tooLarge(`There are ${maxFiles} files, which is the limit. Write into one of them.`);
