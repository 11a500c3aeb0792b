import { concat, defer, map, merge, type Observable, of, throwError } from 'rxjs';
import { MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import type { Queue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import type { CallStoreDriver } from './call-store-driver.js';

/** Looks at what is stored of a call, and again whenever there may be more: one look after the other, and one for all hints that come during a look. Errors with `store` when the store is closed. */
export const lookAgain$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  look: () => Observable<T>,
): Observable<T> =>
  merge(
    // First, so that nothing is missed between the first look and the first hint.
    concat(
      defer(() => driver.changes$(callId)),
      closed$,
    ).pipe(failAs('store', 'The journal could not be followed')),
    of(undefined),
  ).pipe(
    map(() => hint),
    queuedMap(look, oneHint),
  );

const closed$ = throwError(
  () =>
    new MillraceError(
      'store',
      'The store was closed, and with it what is followed. Attach again where it is open.',
    ),
);

const hint = {};

const oneHint = (): Queue<object> => {
  let waiting: object | undefined;
  return {
    get size() {
      return waiting === undefined ? 0 : 1;
    },
    push: (value) => {
      waiting = value;
    },
    shift: () => {
      const value = waiting;
      waiting = undefined;
      return value;
    },
  };
};
