import { Observable } from 'rxjs';
import type { Demand } from './demand.js';

/** Opens a source to pull from; the signal aborts its waits. */
export type OpenPull<T, Return = unknown> = (signal: AbortSignal) => AsyncIterable<T, Return>;

/**
 * Converts an AsyncIterable to an Observable that pulls only while demand is open. Cold. Unsubscribing aborts the
 * signal and calls `return()` without waiting for it: a stalled generator would never return.
 */
export const fromPull = <T>(open: OpenPull<T>, demand: Demand): Observable<T> =>
  pulled(open, demand, (result) => (isYield(result) ? [result.value] : []));

/** As `fromPull`, for batches: emits their values one by one, and keeps the rest while demand is closed. */
export const fromBatches = <T>(open: OpenPull<Iterable<T>>, demand: Demand): Observable<T> =>
  pulled(open, demand, (result) => (isYield(result) ? result.value : []));

/** As `fromPull`, but emits iterator results, including the return value. */
export const pulls = <T, Return>(
  open: OpenPull<T, Return>,
  demand: Demand,
): Observable<IteratorResult<T, Return>> => pulled(open, demand, (result) => [result]);

/** A custom Observable, because every delta passes here: operators would cost more than the delta. */
const pulled = <T, Return, Value>(
  open: OpenPull<T, Return>,
  demand: Demand,
  valuesOf: (result: IteratorResult<T, Return>) => Iterable<Value>,
): Observable<Value> =>
  new Observable((subscriber) => {
    const abort = new AbortController();
    const iterator = open(abort.signal)[Symbol.asyncIterator]();
    /** Values that were pulled, but not emitted; `none` while a pull is pending. */
    let batch: Iterator<Value> | undefined = none;
    let isOpen = false;
    let isFlowing = false;
    let isExhausted = false;

    const guarded = (task: () => void): void => {
      try {
        task();
      } catch (error) {
        subscriber.error(error);
      }
    };
    const take = (result: IteratorResult<T, Return>): void =>
      guarded(() => {
        isExhausted = result.done === true;
        batch = valuesOf(result)[Symbol.iterator]();
        flow();
      });
    const pull = (): void => {
      batch = undefined;
      Promise.resolve(iterator.next()).then(take, (error: unknown) => subscriber.error(error));
    };
    const flow = (): void => {
      // An observer may close demand and open it again.
      if (isFlowing) return;
      isFlowing = true;
      while (isOpen && batch !== undefined && !subscriber.closed) {
        const next = batch.next();
        if (isYield(next)) subscriber.next(next.value);
        else if (isExhausted) subscriber.complete();
        else pull();
      }
      isFlowing = false;
    };

    subscriber.add(() => {
      if (!isExhausted) leave(iterator, abort);
    });
    subscriber.add(
      demand.open$.subscribe({
        next: (level) => {
          isOpen = level;
          guarded(flow);
        },
        error: (error: unknown) => subscriber.error(error),
      }),
    );
  });

const none: Iterator<never> = { next: () => ({ done: true, value: undefined }) };

const isYield = <T>(result: IteratorResult<T, unknown>): result is IteratorYieldResult<T> =>
  result.done !== true;

const leave = (iterator: AsyncIterator<unknown>, abort: AbortController): void => {
  abort.abort();
  Promise.resolve()
    .then(() => iterator.return?.())
    .catch(() => undefined);
};
