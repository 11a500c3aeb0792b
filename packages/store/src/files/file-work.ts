import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { catchError, defer, type MonoTypeOperatorFunction, type Observable, tap } from 'rxjs';
import { markDirectory } from '../mark-directory.js';
import { directoryMissing, toStoreError } from './file-system.js';

/** A subdirectory of a store, for one kind of data. */
export interface Part {
  readonly root: string;
  /** Throws if the store's directory has existed and is now missing: it is never recreated. */
  readonly check: () => void;
  /** Runs `check` before the work, and maps file system errors to `store` errors. */
  readonly withStoreErrors: <T>() => MonoTypeOperatorFunction<T>;
}

export const partsOf = (directory: string): ((name: string) => Part) => {
  const store = resolve(directory);
  const known = new Set<string>();
  return (name) => {
    const root = resolve(store, name);
    const noteExisting = (): void => {
      for (const it of [store, root]) {
        if (known.has(it) || !existsSync(it)) continue;
        known.add(it);
        markDirectory(store);
      }
    };
    const check = (needed = store): void => {
      noteExisting();
      if (known.has(needed) && !existsSync(needed)) throw directoryMissing(root);
    };
    return {
      root,
      check,
      withStoreErrors: () => (work$) =>
        defer(() => {
          check();
          return work$;
        }).pipe(
          catchError((error: unknown) => {
            check(root);
            throw toStoreError(root)(error);
          }),
          tap({ next: noteExisting, finalize: noteExisting }),
        ),
    };
  };
};

/** Runs the work, emits its result and completes. Cold. */
export const fileWork$ = <T>({ withStoreErrors }: Part, work: () => Promise<T>): Observable<T> =>
  defer(work).pipe(withStoreErrors());
