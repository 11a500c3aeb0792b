import { MillraceError } from 'millrace';
import { AsyncSubject, defer, last, type Observable, share, tap } from 'rxjs';

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
  /** Takes a reservation back, of a write that was lost and is tried again. */
  release(path: string, bytes: number): void;
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
    release: (path, bytes) => {
      if (keepsVersions()) change(path, (sizes.get(path) ?? bytes) - bytes);
    },
    settle: (path, bytes) => {
      if (!keepsVersions()) change(path, bytes);
    },
    forget: () => {
      listed$ = undefined;
    },
  };
};

export const tooLarge = (message: string): MillraceError => new MillraceError('tooLarge', message);

const tooMany = (): MillraceError =>
  tooLarge(`There are ${maxFiles} files, which is the limit. Write into one of them.`);
