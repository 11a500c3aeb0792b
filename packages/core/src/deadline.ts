import {
  defer,
  EMPTY,
  finalize,
  identity,
  type MonoTypeOperatorFunction,
  Observable,
  type SchedulerLike,
  Subject,
  take,
} from 'rxjs';
import { MillraceError } from './errors.js';
import { cell, type Locals } from './step.js';

/** The time of a family of calls that does not count towards `callMs`: somebody is asked, or a call waits in a queue. */
export const uncounted = cell(
  'family',
  (): OffTime & { begin: (now: () => number) => () => void } => {
    const ended = new Subject<void>();
    let waits = 0;
    let since = 0;
    let past = 0;
    return {
      ms: (now) => past + (waits > 0 ? now - since : 0),
      end$: defer(() => (waits > 0 ? ended.pipe(take(1)) : EMPTY)),
      begin: (now) => {
        if (waits === 0) since = now();
        waits += 1;
        return () => {
          waits -= 1;
          if (waits > 0) return;
          past += now() - since;
          ended.next();
        };
      },
    };
  },
);

/** Time that a deadline does not count. */
interface OffTime {
  /** How much there has been, in milliseconds. */
  readonly ms: (now: number) => number;
  /** Emits when it ends; empty if there is none now. */
  readonly end$: Observable<void>;
}

/** Waits for a source, off the clock of `callMs`. */
export const offTheClock = <T>(
  { local, scheduler }: { readonly local: Locals; readonly scheduler: SchedulerLike },
  source: Observable<T>,
): Observable<T> =>
  defer(() => source.pipe(finalize(local(uncounted).begin(() => scheduler.now()))));

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
