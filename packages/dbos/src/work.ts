import { randomUUID } from 'node:crypto';
import { DBOS, DBOSWorkflowConflictError } from '@dbos-inc/dbos-sdk';
import { wfQueueRunner } from '@dbos-inc/dbos-sdk/internal/wfqueue';
import { type Agent, isMillraceError, MillraceError } from '@millrace/core';
import { journal } from '@millrace/core/journal';
import {
  checkOptions,
  having,
  isDelay,
  isFunction,
  isRecord,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '@millrace/core/values';
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
  Observable,
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
import { type Database, queueOf, versionOf, type Worker } from './database.js';
import { messageOf, unavailable } from './errors.js';
import { type Order, readOrder } from './order.js';
import {
  type Outcome,
  perform$,
  type PerformedAgent,
  type Performing,
  type WorkerCallOptions,
} from './perform.js';

/** An agent whose calls a worker runs, with the limits of its queue. The last worker that registers sets them. */
export interface WorkedAgent extends PerformedAgent {
  /** Maximum calls of this agent at the same time in this process. Default: 10. */
  readonly concurrency?: number;
  /**
   * Maximum calls of this agent at the same time in all processes. With this or `rate`, each look for waiting calls costs a transaction
   * per waiting session: raise `pollMs`. Default: no limit.
   */
  readonly maxRunning?: number;
  /** Maximum calls of this agent that start within a period, in all processes. Default: no limit. */
  readonly rate?: { readonly calls: number; readonly perMs: number };
}

export interface WorkOptions {
  /**
   * Shuts the worker down when it emits: it takes no more calls, running ones end after their current step, and other workers
   * continue them. Completes then. Unsubscribing does the same immediately, in the middle of steps.
   */
  readonly until$?: Observable<unknown> | undefined;
  /** How long to wait for running steps on `until$`, in milliseconds. A call that waits for a decision is cut after this time. Default: 10,000. */
  readonly drainMs?: number | undefined;
  /** Options of a call that JSON cannot express, such as a context with the database of its user. Default: none. */
  readonly callOptions?: ((call: WorkedCall) => WorkerCallOptions) | undefined;
  /** How often each worker of these agents looks for waiting calls, in milliseconds; the last one that starts sets it. Default: 100. */
  readonly pollMs?: number | undefined;
  /** How often to look for workers that are gone, in milliseconds. Two looks in a row must agree. Default: 2,000. */
  readonly recoverMs?: number | undefined;
  /** Workers that may die while they run a call before it is given up. Default: 50. */
  readonly maxRecoveries?: number | undefined;
}

/** A call that a worker is about to run. */
export type WorkedCall = Pick<Order, 'callId' | 'agent' | 'sessionId' | 'options'>;

/** A notice of a worker. Not a part of any call. */
export type WorkNotice =
  | { readonly type: 'ready'; readonly worker: string }
  | { readonly type: 'started'; readonly callId: string; readonly agent: string }
  | { readonly type: 'ended'; readonly callId: string; readonly reason: string }
  | { readonly type: 'failed'; readonly callId: string; readonly error: MillraceError }
  /** Calls of workers that are gone, now back in their queues. */
  | { readonly type: 'recovered'; readonly callIds: readonly string[] }
  | { readonly type: 'warning'; readonly message: string };

const rules: Readonly<Record<keyof WorkOptions, Rule>> = {
  until$: having('subscribe', 'an Observable'),
  drainMs: isDelay,
  callOptions: isFunction,
  pollMs: wholeNumber(1),
  recoverMs: wholeNumber(1),
  maxRecoveries: wholeNumber(1),
};

const limitRules: Readonly<Record<keyof WorkedAgent, Rule>> = {
  agent: having('call$', 'an agent'),
  concurrency: wholeNumber(1),
  maxRunning: wholeNumber(1),
  rate: [
    (value) =>
      isRecord(value) && wholeNumber(1)[0](value['calls']) && numberFrom(1)[0](value['perMs']),
    '{ calls, perMs }, both of at least 1',
  ],
  onUncertain: oneOf('ask', 'report', 'rerun'),
};

export const checkWork = (agents: readonly (Agent | WorkedAgent)[], options: WorkOptions) => {
  checkOptions('work$()', options, rules);
  const worked = agents.map((it): WorkedAgent => ('agent' in it ? it : { agent: it }));
  worked.forEach((it) => checkOptions('An agent of work$()', it, limitRules, ['agent']));
  const names = worked.map(({ agent }) => agent.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (names.length === 0) throw misuse('work$() needs an agent: work$([agent]).');
  if (twice !== undefined) {
    throw misuse(`work$() has two agents named '${twice}'. Their name is their queue.`);
  }
  return worked;
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);

export interface Engine {
  readonly database: Database;
  readonly store: DatabaseStore;
  readonly version: string | undefined;
}

/** DBOS is one per process: the next worker waits for the end of the one before. */
const inProcess: { isWorking: boolean; ended: Promise<unknown> } = {
  isWorking: false,
  ended: Promise.resolve(),
};

/** Resolves when no worker of this process uses the database. */
export const workEnded = (): Promise<unknown> => inProcess.ended;

/** Time before the lost connection of a worker is opened again, in milliseconds. */
const reconnectMs = 500;

export const work$ = (
  { database, store, version }: Engine,
  agents: readonly WorkedAgent[],
  options: WorkOptions,
): Observable<WorkNotice> =>
  defer(() => {
    if (inProcess.isWorking) throw oncePerProcess();
    inProcess.isWorking = true;
    const { until$ = NEVER, drainMs: timeoutMs = 10_000, callOptions = () => ({}) } = options;
    const { recoverMs = 2_000 } = options;
    const worker = { id: randomUUID(), version: versionOf(database.name, version) };
    const durable = journal(store.calls);
    const notices$ = new Subject<WorkNotice>();
    const stopped$ = new Subject<void>();
    let isDraining = false;
    let isStopped = false;
    let warned = '';
    const warn = (message: string): void => {
      if (message !== warned) notices$.next({ type: 'warning', message });
      warned = message;
    };
    const sent$ = database.presence$(worker.id).pipe(
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
    const performing: Performing = {
      database,
      store,
      durable,
      callOptions,
      sent$,
      version,
      isDraining: () => isDraining,
    };
    const launched$ = new Observable<void>((subscriber) => {
      // DBOS may still start a call that it had taken before the end. Not a step: it would record errors of the end.
      const run: Run = async (worked, given) => {
        if (isStopped) return unsettled();
        const order = readOrder(DBOS.workflowID ?? '', given);
        return performed(performing, worked, order, stopped$, notices$);
      };
      const begun = inProcess.ended.then(() =>
        launch(database, worker, agents, options, run, warn),
      );
      begun.then(
        () => subscriber.next(),
        (error: unknown) => subscriber.error(unavailable(error)),
      );
      return () => {
        const ignore = (): void => undefined;
        // Others need not find out that this worker is gone. DBOS may take more calls until it has ended.
        const leave = (): Promise<void> => database.leave(worker.id).catch(ignore);
        inProcess.ended = begun
          .catch(ignore)
          .then(leave)
          .then(() => DBOS.shutdown({ deregister: true }))
          .catch(ignore)
          .then(leave);
      };
    });
    const queues = agents.map(({ agent }) => queueOf(database.name, agent.name));
    const recovered$ = recovering$({ database, store }, worker, queues, recoverMs, warn);
    const drained$ = until$.pipe(
      take(1),
      tap(() => {
        isDraining = true;
        wfQueueRunner.stop();
      }),
      concatMap(() => durable.drain$({ timeoutMs })),
    );
    const ready: WorkNotice = { type: 'ready', worker: worker.id };
    const working$ = defer(() => from(database.client())).pipe(
      catchError((error: unknown) => throwError(() => unavailable(error))),
      // Other workers take this one for dead while it is not connected.
      concatMap(() =>
        merge(
          sent$.pipe(
            first(),
            concatMap(() => launched$),
          ),
          sent$.pipe(ignoreElements()),
        ),
      ),
      concatMap(() => merge(of(ready), recovered$)),
    );
    const worked$ = merge(notices$, working$).pipe(
      takeUntil(drained$),
      finalize(() => {
        isStopped = true;
        stopped$.next();
        inProcess.isWorking = false;
      }),
    );
    // Completes when other workers have its calls.
    return concat(worked$, defer(() => from(inProcess.ended)).pipe(ignoreElements()));
  });

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

const oncePerProcess = (): MillraceError =>
  misuse('DBOS runs once in a process: end the other work$(), or the DBOS of the program, first.');

type Run = (worked: PerformedAgent, order: unknown) => Promise<Outcome>;

/** The end of a call that another worker continues. */
const unsettled = (): Promise<never> => new Promise(() => undefined);

/** Starts DBOS in this process, with a workflow and a queue for each agent. */
const launch = async (
  database: Database,
  { id, version }: Worker,
  agents: readonly WorkedAgent[],
  { pollMs = 100, maxRecoveries = 50 }: WorkOptions,
  run: Run,
  warn: (message: string) => void,
): Promise<void> => {
  const { name, schema, pool } = database;
  if (DBOS.isInitialized()) throw oncePerProcess();
  const warned = (entry: unknown): void => warn(`DBOS: ${messageOf(entry)}`);
  const ignore = (): void => undefined;
  DBOS.setConfig({
    name,
    systemDatabasePool: pool,
    systemDatabaseSchemaName: schema,
    runMigrations: false,
    executorID: id,
    applicationVersion: version,
    listenQueues: agents.map(({ agent }) => queueOf(name, agent.name)),
    // Its errors are those of calls.
    logger: { info: ignore, debug: ignore, warn: warned, error: ignore },
  });
  for (const worked of agents) {
    // DBOS knows a function by one name only.
    DBOS.registerWorkflow((order: unknown) => run(worked, order), {
      name: worked.agent.name,
      serialization: 'portable',
      maxRecoveryAttempts: maxRecoveries,
    });
  }
  const registrar = await database.client();
  for (const { agent, concurrency = 10, maxRunning, rate } of agents) {
    // Before the launch: DBOS looks for new queues once a second.
    await registrar.registerQueue(queueOf(name, agent.name), {
      partitionConcurrency: 1,
      workerConcurrency: Math.min(concurrency, maxRunning ?? concurrency),
      minPollingIntervalMs: pollMs,
      onConflict: 'always_update',
      ...(maxRunning === undefined ? {} : { globalConcurrency: maxRunning }),
      ...(rate === undefined
        ? {}
        : { rateLimit: { limitPerPeriod: rate.calls, periodSec: rate.perMs / 1_000 } }),
    });
  }
  await DBOS.launch();
  // After a rollback, too: only workers of the latest version run calls that name none.
  await DBOS.setLatestApplicationVersion(version);
};

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
