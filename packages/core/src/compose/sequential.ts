import { concatMap, type Observable, of, type OperatorFunction } from 'rxjs';
import { MillraceError } from '../errors.js';
import type { Input } from '../input.js';
import { isRecord } from '../json.js';
import type { Reply } from '../reply.js';
import { composed, type OutOf, runnersOf, type Composables, unspoken } from './step.js';

type Last<All extends Composables> = All extends readonly [...unknown[], infer AnyStep]
  ? AnyStep
  : never;

/**
 * Composes steps one behind the other: each gets the reply of the one before, and the reply of the last is emitted.
 * The next input waits until all steps are done with the one before; `source$.pipe(a.asOperator(), b.asOperator())`
 * lets it in as soon as the first one is. An error of a step is an error of the whole. In an agent that `asAgent` makes of it, the last
 * step speaks.
 */
export const sequential = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, OutOf<Last<All>>> => {
  const runs = runnersOf('sequential()', steps);
  return composed((input, options) =>
    runs.reduce<Observable<Input>>((input$, run, index) => {
      const own = index === runs.length - 1 ? options : unspoken(options);
      return input$.pipe(concatMap((given) => run(index === 0 ? given : passedOn(given), own)));
    }, of(input)),
  );
};

/** A reply that says nothing can be no input, and one that waits for a result is not to be answered by others. */
const passedOn = (given: Input): Input => {
  if (!isReplyOf(given)) return given;
  const { reason, name = 'agent', content } = given;
  if (reason === 'suspended') {
    throw new MillraceError(
      'invalidState',
      `The agent '${name}' waits for the result of a tool, and nobody can bring it between the steps of sequential(). Let its tools answer at once.`,
    );
  }
  if (reason === 'refused' && !content.some(({ type }) => type === 'text')) {
    throw new MillraceError('refused', `The model of the agent '${name}' would not answer.`);
  }
  return given;
};

const isReplyOf = (given: Input): given is Input & Reply => isRecord(given) && 'reason' in given;
