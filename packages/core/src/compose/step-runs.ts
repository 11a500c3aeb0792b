import { concatMap, type Observable, of, type OperatorFunction } from 'rxjs';
import type { CallOptions } from '../call-options.js';
import { misuse } from '../errors.js';
import type { Input } from '../input.js';

/** Runs one input through a step. The options are for the calls that it makes: where they stand, and whose words theirs are. */
export type StepRun<Out = unknown> = (input: Input, options: CallOptions) => Observable<Out>;

/** What an operator does with one input and options: an operator of RxJS has no room for options. */
const runs = new WeakMap<object, StepRun>();

/**
 * Makes a step of a function of an input and options, for `sequential`, `parallel`, `race`, `route` and `asAgent`. Pass the options on, `agent.call$(input, options)`, so that the calls belong to the call above. For calls that do not give the answer, use `silent(options)`. The next input waits.
 */
export const createStep = <Out>(run: StepRun<Out>): OperatorFunction<Input, Out> => {
  if (typeof run !== 'function') {
    throw misuse('createStep() needs a function of an input and options.');
  }
  return asStep(
    concatMap((input) => run(input, {})),
    run,
  );
};

/** Lets an operator be run with options. */
export const asStep = <Out>(
  operator: OperatorFunction<Input, Out>,
  run: StepRun<Out>,
): OperatorFunction<Input, Out> => {
  runs.set(operator, run);
  return operator;
};

export const runOf = <Out>(operator: OperatorFunction<Input, Out>): StepRun<Out> => {
  // It does what its operator does, which a WeakMap cannot say.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  const run = runs.get(operator) as StepRun<Out> | undefined;
  return run ?? ((input) => of(input).pipe(operator));
};
