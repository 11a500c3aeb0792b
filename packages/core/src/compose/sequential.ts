import { concatMap, type Observable, of, type OperatorFunction } from 'rxjs';
import type { Input } from '../input.js';
import { composed, type OutOf, runnersOf, type Steps, unspoken } from './step.js';

type Last<All extends Steps> = All extends readonly [...unknown[], infer AnyStep] ? AnyStep : never;

/**
 * Composes steps one behind the other: each gets the reply of the one before, and the reply of the last is emitted.
 * The next input waits until all steps are done with the one before; `source$.pipe(a.asOperator(), b.asOperator())`
 * lets it in as soon as the first one is. An error of a step is an error of the whole. In an agent that `asAgent` makes of it, the last
 * step speaks.
 */
export const sequential = <const All extends Steps>(
  ...steps: All
): OperatorFunction<Input, OutOf<Last<All>>> => {
  const runs = runnersOf('sequential()', steps);
  return composed((input, options) =>
    runs.reduce<Observable<Input>>((input$, run, index) => {
      const own = index === runs.length - 1 ? options : unspoken(options);
      return input$.pipe(concatMap((given) => run(given, own)));
    }, of(input)),
  );
};
