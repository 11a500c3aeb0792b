import {
  concatMap,
  defer,
  filter,
  finalize,
  map,
  type Observable,
  repeat,
  take,
  takeWhile,
} from 'rxjs';
import type { Demand } from './demand.js';

/** Opens a source to be pulled from; the signal aborts whatever it waits for. */
export type OpenPull<T, Return = unknown> = (signal: AbortSignal) => AsyncIterable<T, Return>;

/**
 * Turns an AsyncIterable into an Observable that takes its next value only while demand is open: the
 * one way in for sources that are read from outside. Cold. On unsubscribe the signal aborts at once and
 * the iterator is told to return, without waiting for it: a generator that is stalled in a read could
 * not run its `finally` otherwise. Give it batches (one network read each) where values are many.
 */
export const fromPull = <T>(open: OpenPull<T>, demand: Demand): Observable<T> =>
  pulls(open, demand).pipe(
    filter(isYield),
    map(({ value }) => value),
  );

/** As `fromPull`, but emits the iterator's results, and so also what it returned in the end. */
export const pulls = <T, Return>(
  open: OpenPull<T, Return>,
  demand: Demand,
): Observable<IteratorResult<T, Return>> =>
  defer(() => {
    const abort = new AbortController();
    const iterator = open(abort.signal)[Symbol.asyncIterator]();
    let exhausted = false;
    return demand.open$.pipe(
      filter((open) => open),
      take(1),
      concatMap(() => Promise.resolve(iterator.next())),
      repeat(),
      takeWhile(({ done }) => {
        exhausted = done === true;
        return !exhausted;
      }, true),
      finalize(() => {
        if (!exhausted) leave(iterator, abort);
      }),
    );
  });

const isYield = <T>(result: IteratorResult<T, unknown>): result is IteratorYieldResult<T> =>
  result.done !== true;

const leave = (iterator: AsyncIterator<unknown>, abort: AbortController): void => {
  abort.abort();
  Promise.resolve()
    .then(() => iterator.return?.())
    .catch(() => undefined);
};
