import { catchError, defer, forkJoin, type OperatorFunction } from 'rxjs';
import type { Input } from '../input.js';
import { aside } from './aside.js';
import { composed, type OutOf, runnersOf, type Composables } from './step.js';

/**
 * Composes steps side by side: all get the same input at once, and their last replies are emitted together, in the order
 * of the steps. An error of one is an error of the whole: the others are left before anybody hears of it. The next
 * input waits. A list of replies is an input: `sequential(parallel(a, b), judge)`.
 */
export const parallel = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, { readonly [Place in keyof All]: OutOf<All[Place]> }> => {
  const runs = runnersOf('parallel()', steps);
  return composed((input, options) => {
    const ways = aside(options, runs.length);
    return forkJoin(runs.map((run, index) => run(input, ways[index] ?? {}))).pipe(
      // Handled only to be thrown again: by then, the others have been unsubscribed from.
      catchError((error: unknown) =>
        defer(() => {
          throw error;
        }),
      ),
    );
  });
};
