import { catchError, defer, forkJoin, type OperatorFunction } from 'rxjs';
import type { Input } from '../input.js';
import { type Composables, composed, type OutOf, runnersOf, unspoken } from './step.js';
import type { CallOptions } from '../call-options.js';
import { lendAside } from '../places.js';

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

/** The options of steps that run side by side, none of which speaks: the ids of the calls of each do not depend on which is the quicker one. */
export const aside = (options: CallOptions, steps: number): readonly CallOptions[] => {
  const { parent, ...own } = unspoken(options);
  return parent === undefined
    ? Array.from({ length: steps }, () => own)
    : lendAside(parent, steps).map((way) => ({ ...own, parent: way }));
};
