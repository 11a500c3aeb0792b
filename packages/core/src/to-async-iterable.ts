import type { Observable } from 'rxjs';
import type { Demand } from './demand.js';
import { pullFrom } from './streams/pull-from.js';

/**
 * Lets a `for await` pull from an Observable. It subscribes at the first `next()`, and again for each
 * iteration; values that wait for the consumer close the demand; `return()`, as `break` calls it,
 * unsubscribes at once.
 */
export const toAsyncIterable = <T>(open: (demand: Demand) => Observable<T>): AsyncIterable<T> => ({
  [Symbol.asyncIterator]: () => pullFrom(open),
});
