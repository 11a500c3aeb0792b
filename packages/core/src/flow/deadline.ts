import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs';
import { EMPTY, identity, Observable } from 'rxjs';
import { MillraceError } from '../values/errors.js';
import { defined } from '../values/options.js';

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

/** What the loop may do when its iterations are used up. */
type OnLimit = 'answer' | 'error' | 'partial';

/** How long things may take, in milliseconds. What is absent and has no default may take for ever. */
export interface Timeouts {
  /** The whole call: interceptors, model and tools; not the waiting for a person or for another call. Default: 1,800,000, which is 30 minutes; sub-agents have none of their own. */
  readonly callMs?: number;
  /** Each turn of the loop: the model, the tools it asks for, and what interceptors do. */
  readonly iterationMs?: number;
  /** From a request to the model to the first content. Each attempt has it anew. */
  readonly firstChunkMs?: number;
  /** From one piece of content to the next. It and `firstChunkMs` stand still while demand is closed. */
  readonly chunkMs?: number;
  /** Each run of a tool, all attempts together. Default: 60,000. */
  readonly toolMs?: number;
  /** Single tools by name, instead of `toolMs` and of what the tool says itself. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** How long a call may take, and how much it may do. */
export interface LimitOptions {
  /** How many times the loop may ask the model. Default: 10. */
  readonly maxIterations?: number;
  /** What happens then: a closing request without tools (`answer`, the default), a `maxIterations` error (`error`), or the reply so far (`partial`). */
  readonly onLimit?: OnLimit;
  /** In milliseconds. Default: 60,000 for each tool, 30 minutes for the call, and the time-outs of the model. */
  readonly timeouts?: Timeouts;
  /** How many tools of a batch run at once; `true` is 5, `false` one by one. Default: true. */
  readonly parallel?: boolean | number;
  /** Maximum length of a tool result in characters; a longer one is cut, with a marker. Default: 16,000. */
  readonly maxObservation?: number;
  /** Maximum number of tool runs. Further ones are refused, and the model must answer without them. Default: no limit. */
  readonly maxToolCalls?: number;
  /** How often in a row a tool may fail. After one more failure, the model is told not to use it again. Default: 2. */
  readonly maxToolErrors?: number;
  /** Wait before the model is told of a failed tool, in milliseconds, multiplied by the failures in a row. Default: 0. */
  readonly toolBackoffMs?: number;
  /** How often in a row the model is asked to write an unreadable action again. Default: 2. */
  readonly maxParseRetries?: number;
  /** Wait before it is asked, in milliseconds, multiplied by the unreadable actions in a row. Default: 800. */
  readonly parseBackoffMs?: number;
  /** Raises the temperature by `step` (default: 0.2) with each of them, up to `max` (default: 1.5). Default: off. */
  readonly temperatureRamp?: { readonly step?: number; readonly max?: number };
  /** How many failed requests may be sent again in one call, including those of its sub-agents. Default: 10. */
  readonly retryBudget?: number;
}

/** The limits of one call, with the defaults filled in. */
export interface Limits extends Required<
  Omit<LimitOptions, 'parallel' | 'temperatureRamp' | 'retryBudget'>
> {
  readonly parallel: number;
  readonly temperatureRamp: { readonly step: number; readonly max: number } | undefined;
}
