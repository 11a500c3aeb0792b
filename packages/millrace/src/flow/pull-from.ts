import { type Observable, type Observer, Subscription } from 'rxjs';
import { createDemand, type Demand } from './demand.js';
import { createFifo } from './fifo.js';

export interface Puller<T, Result = undefined> {
  next(): Promise<IteratorResult<T, Result | undefined>>;
  /** Unsubscribes immediately, and drops waiting values. */
  return(): Promise<IteratorReturnResult<Result | undefined>>;
}

interface Taker<T, Result> {
  readonly resolve: (result: IteratorResult<T, Result | undefined>) => void;
  readonly reject: (error: unknown) => void;
}

const done = { done: true, value: undefined } as const;

/**
 * Pulls from an Observable: subscribes at the first `next()`, and closes the demand while `highWaterMark` values wait
 * (default: 64). An error follows waiting values. The first result after the last value has what `result` returns.
 */
export const pullFrom = <T, Result = undefined>(
  open: (demand: Demand) => Observable<T>,
  highWaterMark?: number,
  result?: () => Result | undefined,
): Puller<T, Result> => {
  const demand = createDemand(highWaterMark);
  const takers = createFifo<Taker<T, Result>>();
  let ready = createFifo<IteratorYieldResult<T>>();
  let subscription: Subscription | undefined;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;

  let isReturned = false;
  const last = (): IteratorReturnResult<Result | undefined> => {
    if (isReturned || result === undefined) return done;
    isReturned = true;
    return { done: true, value: result() };
  };
  const end = (): void => {
    ended = true;
    for (let taker = takers.shift(); taker !== undefined; taker = takers.shift()) {
      taker.resolve(last());
    }
  };
  const observer: Observer<T> = {
    next: (value) => {
      const taker = takers.shift();
      if (taker !== undefined) {
        taker.resolve({ done: false, value });
        return;
      }
      ready.push({ done: false, value });
      demand.backlog(ready.size);
    },
    error: (error: unknown) => {
      const taker = takers.shift();
      if (taker === undefined) failure = { error };
      else taker.reject(error);
      end();
    },
    complete: end,
  };
  return {
    next: () =>
      new Promise((resolve, reject) => {
        if (subscription === undefined) {
          subscription = new Subscription();
          subscription.add(open(demand).subscribe(observer));
        }
        const value = ready.shift();
        demand.backlog(ready.size);
        if (value !== undefined) {
          resolve(value);
        } else if (!ended) {
          takers.push({ resolve, reject });
        } else if (failure === undefined) {
          resolve(last());
        } else {
          const { error } = failure;
          failure = undefined;
          throw error;
        }
      }),
    return: () =>
      new Promise((resolve) => {
        subscription ??= new Subscription();
        ready = createFifo();
        failure = undefined;
        isReturned = true;
        end();
        try {
          subscription.unsubscribe();
        } finally {
          demand.release();
        }
        resolve(done);
      }),
  };
};
