import { type Observable, type Observer, Subscription } from 'rxjs';
import { createDemand, type Demand } from './demand.js';

/**
 * Lets a `for await` pull from an Observable. It subscribes at the first `next()`, and again for each
 * iteration; values that wait for the consumer close the demand; `return()`, as `break` calls it,
 * unsubscribes at once.
 */
export const toAsyncIterable = <T>(open: (demand: Demand) => Observable<T>): AsyncIterable<T> => ({
  [Symbol.asyncIterator]: () => iterate(open),
});

interface Taker<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

const done = { done: true, value: undefined } as const;

const iterate = <T>(open: (demand: Demand) => Observable<T>): AsyncIterator<T, undefined> => {
  const demand = createDemand();
  const takers: Taker<T>[] = [];
  const ready = createQueue<IteratorYieldResult<T>>();
  let subscription: Subscription | undefined;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;

  const end = (): void => {
    ended = true;
    for (const { resolve } of takers.splice(0)) resolve(done);
  };
  const observer: Observer<T> = {
    next: (value) => {
      const taker = takers.shift();
      if (taker === undefined) demand.backlog(ready.push({ done: false, value }));
      else taker.resolve({ done: false, value });
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
    next: async () => {
      if (subscription === undefined) {
        subscription = new Subscription();
        subscription.add(open(demand).subscribe(observer));
      }
      const result = ready.shift();
      demand.backlog(ready.size());
      if (result !== undefined) return result;
      if (!ended) return new Promise((resolve, reject) => takers.push({ resolve, reject }));
      const thrown = failure;
      failure = undefined;
      if (thrown === undefined) return done;
      throw thrown.error;
    },
    return: () => {
      subscription ??= new Subscription();
      subscription.unsubscribe();
      demand.release();
      ready.clear();
      failure = undefined;
      end();
      return Promise.resolve(done);
    },
  };
};

/** A queue whose `shift` does not move what is behind it. */
interface Queue<T> {
  /** Returns how many wait. */
  push(value: T): number;
  shift(): T | undefined;
  size(): number;
  clear(): void;
}

const createQueue = <T>(): Queue<T> => {
  let values: T[] = [];
  let first = 0;
  return {
    push: (value) => values.push(value) - first,
    size: () => values.length - first,
    shift: () => {
      const value = values[first];
      first += 1;
      if (first > values.length / 2) {
        values = values.slice(first);
        first = 0;
      }
      return value;
    },
    clear: () => {
      values = [];
      first = 0;
    },
  };
};
