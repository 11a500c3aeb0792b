import { randomUUID } from 'node:crypto';
import { DBOS, DBOSWorkflowConflictError } from '@dbos-inc/dbos-sdk';
import { wfQueueRunner } from '@dbos-inc/dbos-sdk/internal/wfqueue';
import { isMillraceError, MillraceError } from 'millrace';
import { journal } from 'millrace/journal';
import { messageOf } from 'millrace/values';
import type { DatabaseStore } from '@millrace/store/postgres';
import {
  catchError,
  concat,
  concatMap,
  defer,
  exhaustMap,
  filter,
  finalize,
  first,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  pairwise,
  retry,
  share,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { Database } from './database.js';
import { unavailable } from './errors.js';
import { claimProcess, launch$, leaveProcess, type Run, workEnded } from './launch.js';
import { type Order, queueOf, readOrder, versionOf } from './order.js';
import { type Outcome, perform$, type PerformedAgent, type Performing } from './perform.js';
import type { Worker } from './recovery.js';
import type { WorkedAgent, WorkNotice, WorkOptions } from './worked-agents.js';

export interface Engine {
  readonly database: Database;
  readonly store: DatabaseStore;
  readonly version: string | undefined;
}

/** Time before the lost connection of a worker is opened again, in milliseconds. */
const reconnectMs = 500;

export const work$ = (
  { database, store, version }: Engine,
  agents: readonly WorkedAgent[],
  options: WorkOptions,
): Observable<WorkNotice> =>
  defer(() => {
    claimProcess();
    const { until$ = NEVER, drainMs: timeoutMs = 10_000, callOptions = () => ({}) } = options;
    const { recoverMs = 2_000 } = options;
    const worker = { id: randomUUID(), version: versionOf(database.name, version) };
    const durable = journal(store.calls);
    const notices$ = new Subject<WorkNotice>();
    const stopped$ = new Subject<void>();
    const state = { isDraining: false, isStopped: false };
    const warn = warnTo(notices$);
    const sent$ = sentTo$(database, worker, warn);
    const isDraining = (): boolean => state.isDraining;
    const parts = { database, store, durable, callOptions, sent$, version };
    const performing: Performing = { ...parts, isDraining };
    // DBOS may still start a call that it had taken before the end. Not a step: it would record errors of the end.
    const run: Run = async (worked, given) => {
      if (state.isStopped) return unsettled();
      const order = readOrder(DBOS.workflowID ?? '', given);
      return performed(performing, worked, order, stopped$, notices$);
    };
    const launched$ = launch$(database, worker, agents, options, run, warn);
    const queues = agents.map(({ agent }) => queueOf(database.name, agent.name));
    const recovered$ = recovering$({ database, store }, worker, queues, recoverMs, warn);
    const ready: WorkNotice = { type: 'ready', worker: worker.id };
    const working$ = connected$(database, sent$, launched$).pipe(
      concatMap(() => merge(of(ready), recovered$)),
    );
    const drained$ = until$.pipe(
      take(1),
      tap(() => {
        state.isDraining = true;
        wfQueueRunner.stop();
      }),
      concatMap(() => durable.drain$({ timeoutMs })),
    );
    const worked$ = merge(notices$, working$).pipe(
      takeUntil(drained$),
      finalize(() => {
        state.isStopped = true;
        stopped$.next();
        leaveProcess();
      }),
    );
    // Completes when other workers have its calls.
    return concat(worked$, defer(() => from(workEnded())).pipe(ignoreElements()));
  });

/** Warns of the same thing in a row once. */
const warnTo = (notices$: Subject<WorkNotice>): ((message: string) => void) => {
  let warned = '';
  return (message) => {
    if (message !== warned) notices$.next({ type: 'warning', message });
    warned = message;
  };
};

/** The connection that shows that a worker is alive, and what arrives over it. Opened again when it is lost. */
const sentTo$ = (
  database: Database,
  { id }: Worker,
  warn: (message: string) => void,
): Observable<string> =>
  database.presence$(id).pipe(
    retry({
      delay: (error) => {
        warn(
          `The connection of this worker was lost, and others may continue its calls: ${messageOf(error)}`,
        );
        return timer(reconnectMs);
      },
    }),
    share(),
  );

/** Starts DBOS once the worker is connected: others take it for dead while it is not. */
const connected$ = (
  database: Database,
  sent$: Observable<string>,
  launched$: Observable<void>,
): Observable<unknown> =>
  defer(() => from(database.client())).pipe(
    catchError((error: unknown) => throwError(() => unavailable(error))),
    concatMap(() =>
      merge(
        sent$.pipe(
          first(),
          concatMap(() => launched$),
        ),
        sent$.pipe(ignoreElements()),
      ),
    ),
  );

/** Looks for workers that are gone, and puts their calls back into their queues. */
const recovering$ = (
  { database, store }: Pick<Engine, 'database' | 'store'>,
  worker: Worker,
  queues: readonly string[],
  recoverMs: number,
  warn: (message: string) => void,
): Observable<WorkNotice> => {
  const orWarning =
    (what: string) =>
    (ids$: Observable<readonly string[]>): Observable<readonly string[]> =>
      ids$.pipe(
        catchError((error: unknown) => {
          warn(`${what} failed: ${messageOf(error)}`);
          return of([]);
        }),
      );
  /** Their claims would last until their leases expire. */
  const release = (callIds: readonly string[]): Promise<unknown> =>
    lastValueFrom(store.release$(callIds), { defaultValue: undefined });
  const gone$ = defer(() => from(database.gone(worker, queues))).pipe(
    orWarning('Looking for workers that are gone'),
  );
  return timer(0, recoverMs).pipe(
    exhaustMap(() => gone$),
    pairwise(),
    // A worker may have lost its connection for a moment only.
    map(([before, now]) => now.filter((id) => before.includes(id))),
    filter((gone) => gone.length > 0),
    exhaustMap((gone) =>
      from(database.recover(gone, queues, release)).pipe(
        orWarning('Taking over the calls of workers that are gone'),
      ),
    ),
    filter((callIds) => callIds.length > 0),
    map((callIds) => ({ type: 'recovered', callIds })),
  );
};

/** The end of a call that another worker continues. */
const unsettled = (): Promise<never> => new Promise(() => undefined);

/** Runs a call for DBOS. Never settles once the worker stops: then another one owns the call. */
const performed = (
  performing: Performing,
  worked: PerformedAgent,
  order: Order,
  stopped$: Observable<unknown>,
  notices$: Subject<WorkNotice>,
): Promise<Outcome> => {
  const { callId, agent } = order;
  const note = (notice: WorkNotice): void => {
    if (order.expires === undefined) notices$.next(notice);
  };
  note({ type: 'started', callId, agent });
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      // DBOS waits for the run that has taken the call over, or has its abort.
      if (cause instanceof DBOSWorkflowConflictError) {
        reject(cause);
        return;
      }
      const error = isMillraceError(cause)
        ? cause
        : new MillraceError('unknown', messageOf(cause), { cause });
      note({ type: 'failed', callId, error });
      reject(recorded(error));
    };
    perform$(performing, worked, order)
      .pipe(takeUntil(stopped$))
      .subscribe({
        next: (outcome) => {
          note({ type: 'ended', callId, reason: outcome.reason });
          resolve(outcome);
        },
        error: fail,
      });
  });
};

/** The error that DBOS records, without its cause and its stack, which may contain secrets. */
const recorded = ({ code, message, retryable }: MillraceError): Error => {
  const error = new Error(message);
  error.name = 'MillraceError';
  delete error.stack;
  return Object.assign(error, { code, retryable });
};
