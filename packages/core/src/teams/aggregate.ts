import { map, type OperatorFunction } from 'rxjs';
import { composed, isStep, type OutOf, runnerOf, type Composable } from '../compose/compose.js';
import { runOf } from '../compose/step-runs.js';
import { misuse } from '../errors.js';
import type { Input } from '../input.js';
import { silent } from '../places.js';

/**
 * Makes one answer of what a step emits, by a function: the replies of a `parallel`, the transcript of a `hub`. Emits what the function makes of each emission: a reply, a message, a text, or what else can
 * be an input. Nobody in the step speaks for an agent that `asAgent` makes of it; whose calls need a model to become one answer go to an agent: `sequential(parallel(a, b), judge)`.
 * What the function throws is an error of the whole.
 */
export const aggregate = <const AnyStep extends Composable, Out extends Input>(
  step: AnyStep,
  toAnswer: (emitted: OutOf<AnyStep>) => Out,
): OperatorFunction<Input, Out> => {
  if (!isStep(step)) {
    throw misuse(
      'aggregate() needs a step, such as parallel(a, b), whose replies it makes one of.',
    );
  }
  if (typeof toAnswer !== 'function') {
    throw misuse('aggregate() needs a function that makes one answer of what the step emits.');
  }
  const run = runnerOf(step);
  const emitted = runOf(composed<OutOf<AnyStep>>((input, options) => run(input, silent(options))));
  return composed((input, options) =>
    emitted(input, options).pipe(map((value) => toAnswer(value))),
  );
};
