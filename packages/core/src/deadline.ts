import {
  identity,
  mergeMap,
  type MonoTypeOperatorFunction,
  type SchedulerLike,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import { MillraceError } from './errors.js';

/** Errors with `timeout` when the source has not completed in so many milliseconds; without a number it waits for ever. It names the option that says so. */
export const deadline = <T>(
  ms: number | undefined,
  scheduler: SchedulerLike,
  what: string,
  option?: string,
): MonoTypeOperatorFunction<T> =>
  ms === undefined
    ? identity
    : takeUntil(
        timer(ms, scheduler).pipe(
          mergeMap(() =>
            throwError(
              () =>
                new MillraceError(
                  'timeout',
                  `${what} did not finish within ${ms} ms${option === undefined ? '' : ` (${option})`}.`,
                ),
            ),
          ),
        ),
      );
