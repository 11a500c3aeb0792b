import { filter, map, Observable } from 'rxjs';
import type { Demand } from './demand.js';

/** Opens a source to pull from; the signal aborts its waits. */
export type OpenPull<T, Return = unknown> = (signal: AbortSignal) => AsyncIterable<T, Return>;

/**
 * Converts an AsyncIterable to an Observable that pulls only while demand is open. Cold. Unsubscribing aborts the
 * signal and calls `return()` without waiting for it: a stalled generator would never return.
 */
export const fromPull = <T>(open: OpenPull<T>, demand: Demand): Observable<T> =>
  pulls(open, demand).pipe(
    filter(isYield),
    map(({ value }) => value),
  );

/** As `fromPull`, but emits iterator results, including the return value. */
export const pulls = <T, Return>(
  open: OpenPull<T, Return>,
  demand: Demand,
): Observable<IteratorResult<T, Return>> =>
  new Observable((subscriber) => {
    const abort = new AbortController();
    const iterator = open(abort.signal)[Symbol.asyncIterator]();
    /** A result that waits for demand. */
    let held: IteratorResult<T, Return> | undefined;
    let isBusy = false;
    let isOpen = false;
    let isExhausted = false;

    const flow = (): void => {
      if (!isOpen || isBusy || subscriber.closed) return;
      isBusy = true;
      if (held === undefined) {
        new Promise<IteratorResult<T, Return>>((resolve) => resolve(iterator.next()))
          .then((result) => {
            isBusy = false;
            isExhausted = !isYield(result);
            held = result;
            flow();
          })
          .catch((error: unknown) => subscriber.error(error));
        return;
      }
      // An observer may close demand and open it again.
      subscriber.next(held);
      isBusy = false;
      held = undefined;
      if (isExhausted) subscriber.complete();
      else flow();
    };

    subscriber.add(() => {
      if (!isExhausted) leave(iterator, abort);
    });
    subscriber.add(
      demand.open$.subscribe({
        next: (level) => {
          isOpen = level;
          flow();
        },
        error: (error: unknown) => subscriber.error(error),
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
