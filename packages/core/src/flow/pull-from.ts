import { type Observable, type Observer, Subscription } from 'rxjs';
import { createDemand, type Demand } from './demand.js';
import { createFifo } from './fifo.js';

export interface Puller<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  /** Unsubscribes immediately, and drops waiting values. */
  return(): Promise<IteratorReturnResult<undefined>>;
}

interface Taker<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

const done = { done: true, value: undefined } as const;

/**
 * Pulls from an Observable: subscribes at the first `next()`, and closes the demand while `highWaterMark` values wait
 * (default: 64). An error follows waiting values.
 */
export const pullFrom = <T>(
  open: (demand: Demand) => Observable<T>,
  highWaterMark?: number,
): Puller<T> => {
  const demand = createDemand(highWaterMark);
  const takers = createFifo<Taker<T>>();
  let ready = createFifo<IteratorYieldResult<T>>();
  let subscription: Subscription | undefined;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;

  const end = (): void => {
    ended = true;
    for (let taker = takers.shift(); taker !== undefined; taker = takers.shift()) {
      taker.resolve(done);
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
        const result = ready.shift();
        demand.backlog(ready.size);
        if (result !== undefined) {
          resolve(result);
        } else if (!ended) {
          takers.push({ resolve, reject });
        } else if (failure === undefined) {
          resolve(done);
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
