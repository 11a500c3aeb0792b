import { identity, type MonoTypeOperatorFunction, Observable, type SchedulerLike } from 'rxjs';
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
    : (source) =>
        new Observable((subscriber) => {
          source.subscribe(subscriber);
          // Most tools are done by now, and need no timer.
          if (subscriber.closed) return;
          subscriber.add(scheduler.schedule(() => subscriber.error(late(ms, what, option)), ms));
        });

const late = (ms: number, what: string, option: string | undefined): MillraceError =>
  new MillraceError(
    'timeout',
    `${what} did not finish within ${ms} ms${option === undefined ? '' : ` (${option})`}.`,
  );
