import {
  type Context,
  MillraceError,
  suspend,
  tool,
  type Tool,
  type ToolContext,
  type ToolOutput,
  toolOutput,
} from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, isRecord, isText, numberFrom, type Rule } from 'millrace/values';
import { concatMap, map, type Observable, of } from 'rxjs';
import { driverOf } from './options.js';
import { isRecorded$, set$, type Timer } from './timers.js';
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
  return perform<number>({
    kind: 'sleep',
    id,
    input: ms,
    run: () => of(scheduler.now() + ms),
    form: { isWritten: (at): at is number => typeof at === 'number' && Number.isFinite(at) },
  }).pipe(
    concatMap((at) =>
      perform<SleepEnd>({
        kind: 'wait',
        id: `${id}/wait`,
        input: undefined,
        run: () => until$(at, scheduler).pipe(map(() => 'slept' as const)),
        cut: () => of('interrupted'),
      }),
    ),
  );
};

/** Options of `sleepTool`. */
export interface SleepToolOptions {
  /** The name for the model. Default: `sleep`. */
  readonly name?: string | undefined;
  /** Up to so many milliseconds, the tool waits itself, without suspending the call. Default: 30,000. */
  readonly holdMs?: number | undefined;
  /** The longest sleep, in milliseconds. Default: 31,622,400,000 (366 days). */
  readonly maxMs?: number | undefined;
}

const rules: Readonly<Record<keyof SleepToolOptions, Rule>> = {
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
 * Returns a tool with which a model sleeps for seconds or for months. A long sleep ends the call with reason `suspended`, so nothing runs meanwhile: the time is
 * stored in the store of the calls, and `wake$` of any process continues the session. A message to the session cancels it, as it cancels any
 * suspended tool call. Needs a session and a journal on this store; in a call without a session, and in a sub-agent, only short sleeps are possible.
 *
 * @example
 * ```ts
 * const store = openFiles('data'); // of `@millrace/store`
 * const agent = createAgent({ model, tools: [sleepTool(store.calls)] });
 * const users = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
 * wake$(store.calls, users).subscribe(console.log);
 * ```
 */
export const sleepTool = (
  store: { readonly driver: CallStoreDriver },
  options: SleepToolOptions = {},
): Tool => {
  checkOptions('sleepTool()', options, rules);
  const driver = driverOf('sleepTool()', store);
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
      if (ms <= holdMs) return until$(at, scheduler).pipe(map(() => slept(at, scheduler.now())));
      return suspended$(driver, at, context, holdMs);
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

/** The prefix of the ids of sleeps. */
export const sleepPrefix = 'sleep:';

/** Stores the time before it suspends the call: if the process ends in between, the tool runs again, and keeps that time. */
const suspended$ = (
  driver: CallStoreDriver,
  wanted: number,
  { agent, callId, idempotencyKey, scheduler, sessionId, toolCallId }: ToolContext,
  holdMs: number,
): Observable<ToolOutput | string> => {
  const where =
    sessionId === undefined ? 'without a session' : agent.length > 1 ? 'in a sub-agent' : undefined;
  if (sessionId === undefined || where !== undefined) {
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
    `The call '${callId}' is not in the store of sleepTool(), so nothing could wake it. Record it there: keepSessions(agent, store.sessions, { journal: journal(store.calls) }).`,
  );

/** The timer of a suspended tool call, if it is a sleep. */
export const sleepIn = (
  request: unknown,
): { readonly id: string; readonly at: number } | undefined => {
  if (!isRecord(request)) return undefined;
  const { sleep: id, at } = request;
  return typeof id === 'string' && typeof at === 'number' ? { id, at } : undefined;
};
