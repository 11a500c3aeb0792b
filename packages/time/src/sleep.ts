import {
  addTools,
  type CallInfo,
  type Context,
  isMillraceError,
  type Layer,
  MillraceError,
  suspend,
  tool,
  type Tool,
  type ToolContext,
  type ToolOutput,
  toolOutput,
} from 'millrace';
import { assertSuspendsBelow, type CallStoreDriver } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, isRecord, isText, numberFrom, type Rule } from 'millrace/values';
import { concatMap, defer, map, type Observable, of } from 'rxjs';
import { driverOf, type TimerStore } from './options.js';
import { isRecorded$, set$, type Timer, written$ } from './timers.js';
import { until$ } from './wait.js';

/** How a sleep ended: an interrupt of the call ends it early. */
export type SleepEnd = 'slept' | 'interrupted';

/**
 * Waits in a phase or a layer, emits how that ended, and completes. The time of the end is a step of the call, so a journal records it: a resumed call waits for the
 * rest only. The process keeps waiting, and the time counts towards `callMs`. `id` is unique in the call, such as `${run.iteration}/sleep`. Cold.
 *
 * @example
 * ```ts
 * const pause: PhaseFactory = (context) => (run$) =>
 *   run$.pipe(concatMap((run) => sleep$(context, `${run.iteration}/pause`, 60_000).pipe(map(() => run))));
 * ```
 */
export const sleep$ = (
  { perform, scheduler }: Pick<Context, 'perform' | 'scheduler'>,
  id: string,
  ms: number,
): Observable<SleepEnd> => {
  checkOptions('sleep$()', { id, ms }, { id: isText, ms: numberFrom(0) });
  return defer(() => {
    // A resumed call has only the clock.
    let passes = Infinity;
    return perform<number>({
      kind: 'sleep',
      id,
      input: ms,
      run: () => {
        passes = ms;
        return of(scheduler.now() + ms);
      },
      form: { isWritten: (at): at is number => typeof at === 'number' && Number.isFinite(at) },
    }).pipe(
      concatMap((at) =>
        perform<SleepEnd>({
          kind: 'wait',
          id: `${id}/wait`,
          input: undefined,
          run: () => until$(at, scheduler, passes).pipe(map(() => 'slept' as const)),
          cut: () => of('interrupted'),
        }),
      ),
    );
  });
};

/** Options of `sleepLayer`. */
export interface SleepLayerOptions {
  /** The name of the tool for the model. Default: `sleep`. */
  readonly name?: string | undefined;
  /** Up to so many milliseconds, the tool waits itself, without suspending the call. Default: 30,000. */
  readonly holdMs?: number | undefined;
  /** The longest sleep, in milliseconds. Default: 31,622,400,000 (366 days). */
  readonly maxMs?: number | undefined;
}

const rules: Readonly<Record<keyof SleepLayerOptions, Rule>> = {
  name: isText,
  holdMs: [
    (value) => Number.isFinite(value) && Number(value) >= 0 && Number(value) <= 3_600_000,
    'a number of milliseconds from 0 to 3,600,000',
  ],
  maxMs: numberFrom(0),
};

const day = 86_400_000;

interface SleepInput {
  readonly days?: number;
  readonly hours?: number;
  readonly minutes?: number;
  readonly seconds?: number;
  readonly until?: string;
}

/**
 * Gives an agent and its sub-agents a tool with which a model sleeps for seconds or for months. A long sleep ends the call with reason `suspended`, so nothing runs
 * meanwhile: the time is stored in the store of the calls, and `wake$` of any process continues the session. A message to the session cancels it, as it cancels any
 * suspended tool call. Needs a session and a journal on this store, and in a sub-agent also `suspendBelow`: without them, only short sleeps are possible, and a `warning` names what is missing.
 *
 * @example
 * ```ts
 * const store = openFiles('data'); // of `@millrace/store`
 * const agent = createAgent({ model, use: [sleepLayer(store.calls), suspendBelow] });
 * const users = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
 * wake$(store.calls, users).subscribe(console.log);
 * ```
 */
export const sleepLayer = (store: TimerStore, options: SleepLayerOptions = {}): Layer => {
  checkOptions('sleepLayer()', options, rules);
  const driver = driverOf('sleepLayer()', store);
  return {
    name: 'sleep',
    single: true,
    inherit: true,
    call: (context) => (next) => (call) => {
      // A tool knows its own call only.
      const cannotSuspend = (): string | undefined => {
        const { info, layers, local } = context;
        const why = whyNotBelow({ info, layers, local, values: call.values });
        if (why !== undefined)
          context.hooks.report(context.hooks.iteration(), { type: 'warning', message: why });
        return why;
      };
      const sleep = sleepTool({ driver, root: context.info.rootId, cannotSuspend }, options);
      return (addTools(sleep).call?.(context)(next) ?? next)(call);
    },
  };
};

/** Why a sub-agent cannot suspend its root call; `undefined` if it can, or if it is no sub-agent. */
const whyNotBelow = (call: Parameters<typeof assertSuspendsBelow>[0]): string | undefined => {
  if (call.info.parentId === undefined) return undefined;
  try {
    assertSuspendsBelow(call, 'A long sleep in a sub-agent');
    return undefined;
  } catch (error) {
    if (isMillraceError(error)) return error.message;
    throw error;
  }
};

/** The call of a sleep tool. */
interface Sleeper {
  readonly driver: CallStoreDriver;
  /** The id of the root call, which is suspended. */
  readonly root: CallInfo['rootId'];
  /** Why the root call cannot be suspended, if so, which it also reports. */
  readonly cannotSuspend: () => string | undefined;
}

/** Creates the tool of a call. */
export const sleepTool = (sleeper: Sleeper, options: SleepLayerOptions): Tool => {
  const { name = 'sleep', holdMs = 30_000, maxMs = 366 * day } = options;
  const amount = { type: 'number', minimum: 0 } as const;
  return tool({
    name,
    description:
      'Waits, and then continues this conversation: for a duration (its parts are added), or until a time. Use it if you are asked to come back or to check again later.',
    idempotent: true,
    timeoutMs: holdMs + 30_000,
    input: jsonSchema({
      type: 'object',
      properties: {
        days: amount,
        hours: amount,
        minutes: amount,
        seconds: amount,
        until: {
          type: 'string',
          description: 'ISO 8601 with an offset, such as 2030-01-31T09:00:00+01:00',
        },
      },
      additionalProperties: false,
    }),
    run: (input, context) => {
      const { scheduler } = context;
      const at = endOf(input, scheduler.now());
      if (typeof at === 'string') return of(refusal(at, scheduler.now()));
      const ms = at - scheduler.now();
      if (ms > maxMs) {
        return of(refusal(`The longest sleep is ${maxMs / 1_000} seconds.`, scheduler.now()));
      }
      if (ms <= holdMs) {
        const passes = input.until === undefined ? ms : Infinity;
        return until$(at, scheduler, passes).pipe(map(() => slept(at, scheduler.now())));
      }
      return suspended$(sleeper, at, context, holdMs);
    },
  });
};

/** The end of a sleep, in milliseconds since the epoch, or what is wrong with the input. */
const endOf = (input: SleepInput, now: number): number | string => {
  const { until, days = 0, hours = 0, minutes = 0, seconds = 0 } = input;
  const ms = days * day + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000;
  if (until === undefined) return ms > 0 ? now + ms : "Give a duration, or 'until'.";
  if (ms > 0) return "Give either a duration or 'until', not both.";
  const at = /T.*(?:Z|[+-]\d\d:?\d\d)$/iu.test(until) ? Date.parse(until) : Number.NaN;
  return Number.isFinite(at)
    ? at
    : "'until' must be a time with an offset, such as 2030-01-31T09:00:00+01:00.";
};

const refusal = (why: string, now: number): ToolOutput =>
  toolOutput({ content: `${why} It is ${iso(now)}.`, isError: true });

const iso = (ms: number): string => new Date(ms).toISOString();

/** The result for the model after a sleep. */
export const slept = (at: number, now: number): string =>
  `The sleep has ended, at ${iso(at)}. It is ${iso(now)}.`;

const sleepPrefix = 'sleep:';

/** Whether a timer with this id is a sleep. */
export const isSleepId = (id: string): boolean => id.startsWith(sleepPrefix);

/** Stores the time before it suspends the call: if the process ends in between, the tool runs again, and keeps that time. */
const suspended$ = (
  { driver, root: callId, cannotSuspend }: Sleeper,
  wanted: number,
  { agent, idempotencyKey, scheduler, sessionId, toolCallId }: ToolContext,
  holdMs: number,
): Observable<ToolOutput | string> => {
  if (sessionId === undefined || cannotSuspend() !== undefined) {
    const where = sessionId === undefined ? 'without a session' : 'in this sub-agent';
    const why = `A sleep ${where} can take up to ${holdMs / 1_000} seconds.`;
    return of(refusal(why, scheduler.now()));
  }
  const timer: Timer = {
    id: `${sleepPrefix}${idempotencyKey}`,
    at: wanted,
    about: `Sleeps until ${iso(wanted)}`,
    data: { callId, sessionId, toolCallId, agent: agent[0] ?? '' },
  };
  return isRecorded$(driver, callId).pipe(
    concatMap((isRecorded) => {
      if (!isRecorded) throw notRecorded(callId);
      return set$(driver, timer);
    }),
    map(({ id, at }) =>
      at <= scheduler.now()
        ? slept(at, scheduler.now())
        : suspend({ sleep: id, at, until: iso(at) }, { from: 'program' }),
    ),
  );
};

const notRecorded = (callId: string): MillraceError =>
  new MillraceError(
    'config',
    `The call '${callId}' is not in the store of sleepLayer(), so nothing could wake it. Record it there: keepSessions(agent, store.sessions, { journal: journal(store.calls) }).`,
  );

/** A suspended tool call that sleeps. */
export interface SleepingToolCall {
  readonly toolCallId: string;
  /** Of its timer. */
  readonly id: string;
  readonly at: number;
}

/**
 * Emits the sleep of a suspension, or `undefined` if it is something else: a person may be asked with a request of the same shape, so only a
 * stored timer of the tool call counts. Cold.
 */
export const sleepIn$ = (
  driver: CallStoreDriver,
  { from, toolCall, request }: Readonly<Record<string, unknown>>,
): Observable<SleepingToolCall | undefined> => {
  const id = isRecord(request) ? request['sleep'] : undefined;
  const toolCallId = isRecord(toolCall) ? toolCall['id'] : undefined;
  const isSleep = from === 'program' && typeof id === 'string' && isSleepId(id);
  if (!isSleep || typeof toolCallId !== 'string') return of(undefined);
  return written$(driver, id).pipe(
    map(({ timer }) => {
      const own = timer?.data['toolCallId'];
      // In a suspension of a sub-agent, the id of the tool call comes after that of the call.
      const isOwn = own !== undefined && `/${toolCallId}`.endsWith(`/${own}`);
      return timer && isOwn ? { toolCallId, id, at: timer.at } : undefined;
    }),
  );
};
