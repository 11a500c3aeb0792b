import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs';
import { defer, EMPTY, identity, type Observable, Subject, take } from 'rxjs';
import { supervised, type TimeLimit } from './gather.js';
import { MillraceError } from '../values/errors.js';
import { defined } from '../values/json.js';
import type { Complete } from '../values/options.js';

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
  timeouts: { toolMs: 60_000, ...defined(timeouts) },
  parallel: typeof parallel === 'number' ? parallel : parallel ? 5 : 1,
  temperatureRamp: temperatureRamp && { step: 0.2, max: 1.5, ...defined(temperatureRamp) },
});

/** Time that a deadline does not count. */
export interface OffTime {
  /** The time that counts so far, in milliseconds: the difference between two readings. */
  readonly countedMs: (now: number) => number;
  /** How often a pause has begun or ended: odd during a pause. */
  readonly turns: () => number;
  /** Emits when the current pause ends; empty without one. */
  readonly end$: Observable<void>;
}

/** Creates time with pauses, which may overlap: `begin` starts one, and returns how to end it. */
export const createOffTime = (): OffTime & {
  readonly begin: (now: () => number) => () => void;
} => {
  const ended = new Subject<void>();
  let [pauses, turns, since, counted] = [0, 0, 0, 0];
  const countedMs = (now: number): number => counted + (pauses > 0 ? 0 : Math.max(0, now - since));
  return {
    countedMs,
    turns: () => turns,
    end$: defer(() => (pauses > 0 ? ended.pipe(take(1)) : EMPTY)),
    begin: (now) => {
      if (pauses === 0) {
        counted = countedMs(now());
        turns += 1;
      }
      pauses += 1;
      return () => {
        pauses -= 1;
        if (pauses > 0) return;
        since = now();
        turns += 1;
        ended.next();
      };
    },
  };
};

/** Errors with `timeout` if the source does not complete within `ms`; never if undefined. The message names `option`. */
export const deadline = <T>(...limit: Parameters<typeof timeLimit>): MonoTypeOperatorFunction<T> =>
  limit[0] === undefined ? identity : supervised({ limit: timeLimit(...limit) });

export const timeLimit =
  (
    ms: number | undefined,
    scheduler: SchedulerLike,
    what: string,
    option?: string,
    off?: OffTime,
  ): TimeLimit =>
  (owner, fail) => {
    // Synchronous work needs no timer.
    if (ms === undefined || owner.closed) return;
    const counted = (): number => off?.countedMs(scheduler.now()) ?? 0;
    const turns = (): number => off?.turns() ?? 0;
    const wait = (left: number): void => {
      const [since, turn] = [counted(), turns()];
      const check = (): void => {
        // A timer measures time, and a clock may be set: it only says what pauses have left of it.
        const isWhole = turn % 2 === 0 && turn === turns();
        const more = isWhole ? 0 : left - Math.max(0, counted() - since);
        if (more <= 0) fail(late(ms, what, option));
        else owner.add((off?.end$ ?? EMPTY).subscribe({ error: fail, complete: () => wait(more) }));
      };
      owner.add(scheduler.schedule(check, left));
    };
    wait(ms);
  };

const late = (ms: number, what: string, option: string | undefined): MillraceError =>
  new MillraceError(
    'timeout',
    `${what} did not finish within ${ms} ms${option === undefined ? '' : ` (${option})`}.`,
  );

type OnLimit = 'answer' | 'error' | 'partial';

/** Timeouts, in milliseconds. Without a value or default there is no limit. */
export interface Timeouts {
  /** The call, without waiting for a person or another call. Default: 1,800,000 (30 minutes); none for sub-agents. */
  readonly callMs?: number | undefined;
  /** Each turn of the loop: model, tools and interceptors. */
  readonly iterationMs?: number | undefined;
  /** From a model request to the first content, for each attempt. */
  readonly firstChunkMs?: number | undefined;
  /** From one piece of content to the next. Like `firstChunkMs`, it pauses while demand is closed. */
  readonly chunkMs?: number | undefined;
  /** From one piece of content to the next while the model shows that it works, such as on reasoning. Default: 600,000. */
  readonly busyMs?: number | undefined;
  /** Each tool call, including all attempts. Default: 60,000. */
  readonly toolMs?: number | undefined;
  /**
   * By tool name; overrides `toolMs` and the tool's own `timeoutMs`. A misspelt name of a tool of the call is a `config` error; other
   * names without a tool are ignored: it may come later, in a group, from a server or from `toolkit.add`, or belong to another agent.
   */
  readonly tools?: Readonly<Record<string, number>> | undefined;
}

export interface LimitOptions {
  /** Maximum number of model requests of the loop. Default: 10. */
  readonly maxIterations?: number | undefined;
  /** Then: a closing request without tools (`answer`, default), a `maxIterations` error, or the reply so far (`partial`). */
  readonly onLimit?: OnLimit | undefined;
  /** Timeouts, in milliseconds. Default: 60,000 per tool call, 30 minutes per call, and those of the model. */
  readonly timeouts?: Timeouts | undefined;
  /** How many tools of a batch run in parallel; `true` is 5, `false` is 1. Default: true. */
  readonly parallel?: boolean | number | undefined;
  /** Maximum length of a tool result in characters; longer ones are truncated, with a marker. Default: 16,000. */
  readonly maxObservation?: number | undefined;
  /** Maximum number of tool calls that run. Later ones are refused. Default: no limit. */
  readonly maxToolCalls?: number | undefined;
  /** Failures of a tool in a row before the result asks the model not to call it again. Default: 2. */
  readonly maxToolErrors?: number | undefined;
  /** Delay before a tool error is reported, in milliseconds, multiplied by the failures in a row. Default: 0. */
  readonly toolBackoffMs?: number | undefined;
  /** Maximum number of retries in a row for actions that cannot be parsed. Default: 2. */
  readonly maxParseRetries?: number | undefined;
  /** Delay before such a retry, in milliseconds, multiplied by the number in a row. Default: 800. */
  readonly parseBackoffMs?: number | undefined;
  /** Raises the temperature by `step` (default: 0.2) with each such retry, up to `max` (default: 1.5). Default: off. */
  readonly temperatureRamp?:
    { readonly step?: number | undefined; readonly max?: number | undefined } | undefined;
  /** Maximum number of retried model requests per call, including sub-agents. Default: 10. */
  readonly retryBudget?: number | undefined;
}

/** The limits of one call, with the defaults filled in. */
export interface Limits extends Complete<
  Omit<LimitOptions, 'parallel' | 'temperatureRamp' | 'retryBudget'>
> {
  readonly parallel: number;
  readonly temperatureRamp: { readonly step: number; readonly max: number } | undefined;
}
