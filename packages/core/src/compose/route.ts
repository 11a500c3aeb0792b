import {
  defaultIfEmpty,
  concatMap,
  from,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  take,
} from 'rxjs';
import type { CallOptions } from '../call-options.js';
import { misuse, MillraceError } from '../errors.js';
import type { Input } from '../input.js';
import { composed, isStep, type OutOf, runnerOf, type Composable, unspoken } from './step.js';

/** A step, or something that will tell one. Nothing means that there is no step for the input. */
export type Route<AnyStep extends Composable> =
  AnyStep | undefined | ObservableInput<AnyStep | undefined>;

/**
 * Composes steps of which one is chosen for each input, by a function that gives it, or an Observable or Promise of it,
 * such as the answer of a model; an Observable is left with its first value. An input for which there is none is an
 * `invalidRequest` error. The next input waits. A function that calls an agent passes its second argument on, so that the call belongs to
 * the one above: `route((input, options) => judge.call$(input, options).pipe(map(…)))`. In an agent that `asAgent` makes of it, the step that was chosen speaks.
 */
export const route = <AnyStep extends Composable>(
  choose: (input: Input, options: CallOptions) => Route<AnyStep>,
): OperatorFunction<Input, OutOf<AnyStep>> => {
  if (typeof choose !== 'function') {
    throw misuse('route() needs a function that chooses a step for an input.');
  }
  return composed((input, options) =>
    choice$(choose(input, unspoken(options))).pipe(
      take(1),
      defaultIfEmpty(undefined),
      concatMap((step) => {
        if (step === undefined) throw noRoute();
        if (!isStep(step)) throw misuse('route(): what was chosen is no step.');
        return runnerOf(step)(input, options);
      }),
    ),
  );
};

const choice$ = <AnyStep extends Composable>(
  chosen: Route<AnyStep>,
): Observable<AnyStep | undefined> => (isToldLater(chosen) ? from(chosen) : of(chosen));

const isToldLater = <AnyStep extends Composable>(
  chosen: Route<AnyStep>,
): chosen is ObservableInput<AnyStep | undefined> => chosen !== undefined && !isStep(chosen);

const noRoute = (): MillraceError =>
  new MillraceError('invalidRequest', 'route() has chosen no step for the input.');
