import { DBOSWorkflowConflictError } from '@dbos-inc/dbos-sdk';
import {
  type Agent,
  type CallOptions,
  interruptOn,
  isMillraceError,
  type Reply,
  toolOutput,
} from '@millrace/core';
import type { CallStore, Journal } from '@millrace/core/journal';
import { keepSessions } from '@millrace/core/sessions';
import { parsedJson } from '@millrace/core/values';
import type { DatabaseStore } from '@millrace/store/postgres';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  endWith,
  exhaustMap,
  filter,
  ignoreElements,
  interval,
  last,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  reduce,
  retry,
  share,
  skip,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { type Database, retryMs, stored$ } from './database.js';
import { decided, kindOf, type Message, messagesTo$ } from './messages.js';
import { continued, expiryOf, type Order } from './order.js';

/** Options of a call that JSON cannot express: its worker adds them, also when it resumes the call. */
export type WorkerCallOptions = Pick<CallOptions, 'model' | 'tools' | 'context' | 'use'>;

export interface PerformedAgent {
  readonly agent: Agent;
  /** For tool calls that were running when a worker died: see `journal`. `ask` suspends the call. Default: `ask`. */
  readonly onUncertain?: 'ask' | 'report' | 'rerun';
}

export interface Performing {
  readonly database: Database;
  readonly store: DatabaseStore;
  readonly durable: Journal<CallStore>;
  readonly agents: ReadonlyMap<string, PerformedAgent>;
  readonly callOptions: (order: Order) => WorkerCallOptions;
  /** The ids of calls that have a new message; an empty id stands for all. */
  readonly sent$: Observable<string>;
  /** Pins the calls that it starts. */
  readonly version: string | undefined;
  readonly isDraining: () => boolean;
}

/** The result of a workflow. The reply itself is in the log of the call. */
export interface Outcome {
  readonly reason: string;
}

/**
 * Runs a call, or resumes it after the last step of an earlier worker, and emits how it ended. Waits while the database is
 * unreachable, or a worker that was taken for dead still has the call. Never ends if the call is drained: another
 * worker continues it. Errors as the call does, and with a conflict of DBOS if another worker has taken it over.
 */
export const perform$ = (performing: Performing, order: Order): Observable<Outcome> => {
  const { database } = performing;
  const { callId, expires } = order;
  const owner$ = stored$(() => database.owner(callId));
  return owner$.pipe(
    concatMap((token) => {
      const isOurs$ = owner$.pipe(map((now) => now === token));
      /** If another run has taken the call over, that one reports its end. */
      const whileOurs$ = isOurs$.pipe(
        map((isOurs) => {
          if (!isOurs) throw new DBOSWorkflowConflictError(callId);
        }),
      );
      if (expires !== undefined) return expire$(performing, order, expires);
      return call$(performing, order, isOurs$).pipe(
        catchError((error: unknown) =>
          whileOurs$.pipe(
            map((): never => {
              throw error;
            }),
          ),
        ),
        concatMap((reply) =>
          whileOurs$.pipe(concatMap(() => afterwards$(performing, order, reply))),
        ),
      );
    }),
  );
};

const call$ = (
  performing: Performing,
  order: Order,
  isOurs$: Observable<boolean>,
): Observable<Reply> => {
  const { database, store, agents, sent$, isDraining } = performing;
  const { callId, sessionId } = order;
  const messages$ = messagesTo$(database, callId, sent$);
  const reply$ = defer(() => {
    const worked = agents.get(order.agent);
    if (worked === undefined) throw new Error(`This worker has no agent '${order.agent}'.`);
    const { agent, onUncertain = 'ask' } = worked;
    const interrupts$ = messages$.pipe(filter(kindOf('interrupt')));
    const own = agent.with(decided(messages$), interruptOn(interrupts$));
    return recorded$(store.calls, callId).pipe(
      concatMap(({ steps }) => {
        const from = { isBegun: steps > 0, onUncertain };
        return sessionId === undefined
          ? ofAgent$(performing, own, order, from)
          : ofSession$(performing, own, { ...order, sessionId }, from, messages$);
      }),
    );
  }).pipe(
    retry({
      delay: (error: unknown) => {
        if (!isTransient(error)) throw error;
        return timer(retryMs).pipe(
          concatMap(() => isOurs$),
          tap((isOurs) => {
            if (!isOurs) throw error;
          }),
        );
      },
    }),
    catchError((error: unknown) => {
      if (!isDraining() || !isLeft(error)) throw error;
      return isOurs$.pipe(
        filter(Boolean),
        mergeMap(() => stored$(() => database.handOver(callId))),
        mergeMap(() => NEVER),
      );
    }),
    // Completed: the log has its last event.
    last(),
    share(),
  );
  /** The call was aborted, or another worker has it: nothing more may be done here. */
  const lost$ = merge(interval(ownerMs), messages$.pipe(filter(kindOf('abort')))).pipe(
    exhaustMap(() => isOurs$),
    filter((isOurs) => !isOurs),
    map((): never => {
      throw new DBOSWorkflowConflictError(callId);
    }),
    takeUntil(reply$.pipe(last(undefined, true))),
  );
  return merge(reply$, lost$);
};

/** How often a worker looks whether a call is still its own, in milliseconds. */
const ownerMs = 5_000;

/** The database is away, or a worker that was taken for dead holds the call. */
const isTransient = (error: unknown): boolean =>
  isMillraceError(error) &&
  error.retryable &&
  (error.code === 'store' || error.code === 'conflict');

/** The call ended at a step, or was not admitted. */
const isLeft = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'aborted' || error.code === 'busy');

/** The ids of the recorded steps of a call, and how many messages of `steer$` they have taken. */
const recorded$ = (
  { driver }: CallStore,
  callId: string,
): Observable<{ readonly steps: number; readonly steers: number }> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    reduce(
      ({ steps, steers }, { name, text }) => ({
        steps: steps + 1,
        steers: steers + (isSteering(callId, name) ? lengthOf(text) : 0),
      }),
      { steps: 0, steers: 0 },
    ),
  );

const isSteering = (callId: string, name: string): boolean =>
  name.startsWith(`${callId}/`) && /^\d+\/steering$/.test(name.slice(callId.length + 1));

const lengthOf = (text: string): number => {
  const value: unknown = parsedJson(text);
  return Array.isArray(value) ? value.length : 0;
};

/** Whether the call has begun, and what to do about its uncertain tools. */
type Continued = Required<Pick<PerformedAgent, 'onUncertain'>> & { readonly isBegun: boolean };

const ofAgent$ = (
  { durable, callOptions }: Performing,
  agent: Agent,
  order: Order,
  { isBegun, onUncertain }: Continued,
): Observable<Reply> => {
  const { callId, input, options } = order;
  const more = callOptions(order);
  return isBegun
    ? durable.resume$(agent, callId, { ...more, onUncertain })
    : agent.with(durable).call$(input, { ...options, ...more, callId });
};

const ofSession$ = (
  { store, durable, callOptions }: Performing,
  agent: Agent,
  order: Order & { readonly sessionId: string },
  { isBegun, onUncertain }: Continued,
  messages$: Observable<Message>,
): Observable<Reply> => {
  const { callId, sessionId, input, options } = order;
  const more = callOptions(order);
  // Opened for this call only: another worker may run the next one.
  return keepSessions(agent, store.sessions, { journal: durable })
    .open$(sessionId)
    .pipe(
      mergeMap((session) => {
        const reply$ = (
          isBegun
            ? session.resume$(callId, { ...more, onUncertain })
            : session.call$(input, { ...options, ...more, callId })
        ).pipe(share());
        // From its first event on, the call can be steered, and no other worker steers it.
        const steered$ = session.events$.pipe(
          take(1),
          mergeMap(() => recorded$(store.calls, callId)),
          mergeMap(({ steers }) => messages$.pipe(filter(kindOf('steer')), skip(steers))),
          // The call continues without a message that it cannot take.
          mergeMap(({ input }) => session.steer$(input).pipe(catchError(() => EMPTY))),
          ignoreElements(),
          takeUntil(reply$.pipe(ignoreElements(), endWith(true))),
        );
        return merge(steered$, reply$);
      }),
    );
};

/** The calls of a suspended session wait, and its time may be limited. */
const afterwards$ = (
  { database }: Performing,
  order: Order,
  { reason, suspensions = [] }: Reply,
): Observable<Outcome> => {
  const { callId, sessionId, agent, options, answerWithinMs: delayMs } = order;
  const outcome = { reason };
  if (reason !== 'suspended' || sessionId === undefined) return of(outcome);
  const toolCallIds = suspensions.map(({ toolCall }) => toolCall.id);
  const expiry: Order = {
    callId: expiryOf(callId),
    agent,
    input: '',
    ...(options === undefined ? {} : { options }),
    ...(delayMs === undefined ? {} : { answerWithinMs: delayMs }),
    expires: { callId, sessionId, toolCallIds },
  };
  return stored$(() => database.suspend(order, expiry, { delayMs })).pipe(map(() => outcome));
};

const expire$ = (
  { database, version }: Performing,
  { expires: _, ...order }: Order,
  { toolCallIds, ...suspended }: NonNullable<Order['expires']>,
): Observable<Outcome> => {
  const late = toolOutput({ content: 'There was no answer in time.', isError: true });
  const results = Object.fromEntries(toolCallIds.map((id) => [id, late]));
  const own = { ...order, ...suspended };
  return stored$(() => database.answer(own, continued(own, results), { version })).pipe(
    catchError((error: unknown) => {
      // The answer came first.
      if (isMillraceError(error) && error.code === 'conflict') return of(undefined);
      throw error;
    }),
    map(() => ({ reason: 'expired' })),
  );
};
