import { concatMap, isObservable, type Observable, of, take, toArray } from 'rxjs';
import type { MillraceError } from '../values/errors.js';
import { restoreAsyncContext } from './async-context.js';
import { atOnce, type Eventual } from './eventual.js';

/** The one value of a source, when it completes and before it is torn down; without one, what `none` returns. A second value is an error. */
export const oneValue = <T>(
  given: Eventual<T>,
  several: () => MillraceError,
  none: () => Observable<T>,
): Eventual<T> => {
  const value = atOnce(given);
  if (!isObservable(value)) return value;
  return value.pipe(
    restoreAsyncContext(),
    take(2),
    toArray(),
    concatMap((values) => {
      if (values.length > 1) throw several();
      return values.length === 0 ? none() : of(...values);
    }),
  );
};
