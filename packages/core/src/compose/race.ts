import {
  catchError,
  defer,
  NEVER,
  type Observable,
  type OperatorFunction,
  race as firstOf,
  take,
  throwIfEmpty,
} from 'rxjs';
import { MillraceError } from '../errors.js';
import type { Input } from '../input.js';
import { aside } from './parallel.js';
import { composed, type OutOf, runnersOf, type Composables } from './step.js';

/**
 * Composes steps that compete: all get the same input at once, and the first reply is emitted; the others are left
 * before it is. One that fails, or ends without a reply, is out of the race; where all are, their first error is the
 * error of the whole. The next input waits.
 */
export const race = <const All extends Composables>(
  ...steps: All
): OperatorFunction<Input, OutOf<All[number]>> => {
  const runs = runnersOf('race()', steps);
  return composed((input, options) =>
    defer(() => {
      const errors: unknown[] = [];
      const ways = aside(options, runs.length);
      const lost = (error: unknown): Observable<never> => {
        errors.push(error);
        if (errors.length < runs.length) return NEVER;
        throw errors[0];
      };
      return firstOf(
        runs.map((run, index) =>
          run(input, ways[index] ?? {}).pipe(take(1), throwIfEmpty(noReply), catchError(lost)),
        ),
      );
    }),
  );
};

const noReply = (): MillraceError =>
  new MillraceError('emptyAnswer', 'No step of race() gave a reply.');
