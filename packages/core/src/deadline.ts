import {
  EMPTY,
  identity,
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
} from 'rxjs';
import { MillraceError } from './errors.js';
import { defined } from './options.js';
import type { LimitOptions, Limits } from './limits.js';

export const limitsOf = ({
  timeouts,
  parallel = true,
  temperatureRamp,
  ...own
}: LimitOptions = {}): Limits => ({
  maxIterations: 10,
  onLimit: 'answer',
  maxObservation: 16_000,
  maxToolCalls: Infinity,
  maxToolErrors: 2,
  toolBackoffMs: 0,
  maxParseRetries: 2,
  parseBackoffMs: 800,
  ...defined(own),
  timeouts: { toolMs: 60_000, ...timeouts },
  parallel: typeof parallel === 'number' ? parallel : parallel ? 5 : 1,
  temperatureRamp: temperatureRamp && { step: 0.2, max: 1.5, ...defined(temperatureRamp) },
});

/** Time that a deadline does not count. */
export interface OffTime {
  /** How much there has been, in milliseconds. */
  readonly ms: (now: number) => number;
  /** Emits when it ends; empty if there is none now. */
  readonly end$: Observable<void>;
}

/** Errors with `timeout` when the source has not completed in so many milliseconds; without a number it waits for ever. It names the option that says so. */
export const deadline = <T>(
  ms: number | undefined,
  scheduler: SchedulerLike,
  what: string,
  option?: string,
  off?: OffTime,
): MonoTypeOperatorFunction<T> =>
  ms === undefined
    ? identity
    : (source) =>
        new Observable((subscriber) => {
          source.subscribe(subscriber);
          // Most tools are done by now, and need no timer.
          if (subscriber.closed) return;
          const offMs = (): number => off?.ms(scheduler.now()) ?? 0;
          const end = scheduler.now() + ms - offMs();
          const check = (): void => {
            const left = end + offMs() - scheduler.now();
            if (left <= 0) subscriber.error(late(ms, what, option));
            else
              subscriber.add(
                (off?.end$ ?? EMPTY).subscribe({
                  error: (error: unknown) => subscriber.error(error),
                  complete: () => wait(left),
                }),
              );
          };
          const wait = (left: number): void => {
            subscriber.add(scheduler.schedule(check, left));
          };
          wait(ms);
        });

const late = (ms: number, what: string, option: string | undefined): MillraceError =>
  new MillraceError(
    'timeout',
    `${what} did not finish within ${ms} ms${option === undefined ? '' : ` (${option})`}.`,
  );
