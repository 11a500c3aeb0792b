import { concatMap, type Observable, of, take, toArray } from 'rxjs';
import type { MillraceError } from '../values/errors.js';
import { deferInAsyncContext } from './async-context.js';

/** Emits the one value of a source when it completes; without one, what `none` returns. A second value is an error. */
export const oneValue$ = <T>(
  source: () => Observable<T>,
  several: () => MillraceError,
  none: () => Observable<T>,
): Observable<T> =>
  deferInAsyncContext(source).pipe(
    take(2),
    toArray(),
    concatMap((values) => {
      if (values.length > 1) throw several();
      return values.length === 0 ? none() : of(...values);
    }),
  );
