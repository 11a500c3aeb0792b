import { DBOSWorkflowConflictError } from '@dbos-inc/dbos-sdk';
import {
  type Agent,
  type CallOptions,
  interruptOn,
  isMillraceError,
  type Layer,
  type Reply,
} from 'millrace';
import type { CallStore, Journal } from 'millrace/journal';
import { keepSessions, type KeptSession } from 'millrace/sessions';
import { parsedJson } from 'millrace/values';
import type { DatabaseStore } from '@millrace/store/postgres';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  endWith,
  exhaustMap,
  filter,
  first,
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
  ReplaySubject,
  retry,
  share,
  skip,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Database } from './database.js';
import { isTransient, retryMs, stored$ } from './errors.js';
import { decided, kindOf, type Message, messagesTo$ } from './messages.js';
import type { Order } from './order.js';
import { expired$, suspended$ } from './suspension.js';

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
export const perform$ = (
  performing: Performing,
  worked: PerformedAgent,
  order: Order,
): Observable<Outcome> => {
  const { database, version } = performing;
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
      if (expires !== undefined) {
        return expired$(database, order, expires, version).pipe(endWith({ reason: 'expired' }));
      }
      return call$(performing, worked, order, isOurs$).pipe(
        catchError((error: unknown) =>
          whileOurs$.pipe(
            map((): never => {
              throw error;
            }),
          ),
        ),
        concatMap((reply) =>
          whileOurs$.pipe(
            concatMap(() => noted$(database, order, reply)),
            map(() => ({ reason: reply.reason })),
          ),
        ),
      );
    }),
  );
};

const call$ = (
  performing: Performing,
  { agent, onUncertain = 'ask' }: PerformedAgent,
  order: Order,
  isOurs$: Observable<boolean>,
): Observable<Reply> => {
  const { database, store, sent$, isDraining } = performing;
  const { callId, sessionId } = order;
  const messages$ = messagesTo$(database, callId, sent$);
  const reply$ = defer(() => {
    const interrupts$ = messages$.pipe(filter(kindOf('interrupt')));
    const own = agent.with(decided(messages$), interruptOn(interrupts$));
    return isBegun$(store.calls, callId).pipe(
      concatMap((isBegun) => {
        const from = { isBegun, onUncertain };
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

/** The call ended at a step, or was not admitted. */
const isLeft = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'aborted' || error.code === 'busy');

const isBegun$ = ({ driver }: CallStore, callId: string): Observable<boolean> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    map(({ length }) => length > 0),
    first(Boolean, false),
  );

/** How many messages of `steer$` the recorded steps of a call have taken. */
const steersTaken$ = ({ driver }: CallStore, callId: string): Observable<number> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    concatMap((records) => records),
    filter(({ name }) => isSteering(callId, name)),
    reduce((taken, { text }) => taken + lengthOf(text), 0),
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
  const steered$ = (taken: number): Observable<never> =>
    session$.pipe(
      mergeMap((session) =>
        messages$.pipe(
          filter(kindOf('steer')),
          skip(taken),
          // The call continues without a message that it cannot take.
          mergeMap((message) =>
            session.steer$(message.input, callId).pipe(catchError(() => EMPTY)),
          ),
        ),
      ),
      ignoreElements(),
    );
  /** When this worker alone has the call, and before the call continues. */
  const steering: Layer = {
    name: 'steeredByEngine',
    call: () => (next) => (call) =>
      steersTaken$(store.calls, callId).pipe(
        concatMap((taken) => merge(steered$(taken), next(call))),
        take(1),
      ),
  };
  // Opened for this call only: another worker may run the next one.
  const session$ = keepSessions(agent.with(steering), store.sessions, { journal: durable })
    .open$(sessionId)
    .pipe(share({ connector: () => new ReplaySubject<KeptSession>(1) }));
  return session$.pipe(
    mergeMap((session) =>
      isBegun
        ? session.resume$(callId, { ...more, onUncertain })
        : session.call$(input, { ...options, ...more, callId }),
    ),
  );
};

const noted$ = (
  database: Database,
  order: Order,
  { reason, suspensions = [] }: Reply,
): Observable<unknown> => {
  const { sessionId } = order;
  return reason === 'suspended' && sessionId !== undefined
    ? suspended$(database, { ...order, sessionId }, suspensions)
    : of(undefined);
};
