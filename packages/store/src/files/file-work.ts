import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { catchError, defer, type MonoTypeOperatorFunction, type Observable, tap } from 'rxjs';
import { directoryGone, fileFailure } from './failure.js';

/** A part of a store: a directory in that of the store. */
export interface Part {
  readonly root: string;
  /** Throws if the directory of the store has been there, and is gone: it is not made again. */
  readonly check: () => void;
  /** Errors as a store in this directory does. */
  readonly failing: <T>() => MonoTypeOperatorFunction<T>;
}

/** Makes the parts of a store. */
export const partsOf = (directory: string): ((name: string) => Part) => {
  const store = resolve(directory);
  const known = new Set<string>();
  return (name) => {
    const root = resolve(store, name);
    const see = (): void => {
      for (const it of [store, root]) if (existsSync(it)) known.add(it);
    };
    const check = (needed = store): void => {
      see();
      if (known.has(needed) && !existsSync(needed)) throw directoryGone(root);
    };
    return {
      root,
      check,
      failing: () => (work$) =>
        defer(() => {
          check();
          return work$;
        }).pipe(
          catchError((error: unknown) => {
            check(root);
            throw fileFailure(root)(error);
          }),
          tap({ next: see, finalize: see }),
        ),
    };
  };
};

/** Does work with the files of a part, emits what comes of it, and completes. Cold. */
export const fileWork$ = <T>({ failing }: Part, work: () => Promise<T>): Observable<T> =>
  defer(work).pipe(failing());
