import { randomUUID } from 'node:crypto';
import {
  type Agent,
  type AgentEvent,
  type Input,
  isMillraceError,
  MillraceError,
  type Reply,
  type ToolCallBlock,
  type Verdict,
} from '@millrace/core';
import { fork$, isUndecided$ } from '@millrace/core/journal';
import {
  checkOptions,
  isObject,
  isRecord,
  isText,
  numberFrom,
  type Rule,
} from '@millrace/core/values';
import { type DatabaseStore, openPostgres, type PostgresOptions } from '@millrace/store/postgres';
import type { PoolConfig } from 'pg';
import {
  catchError,
  concat,
  concatMap,
  EMPTY,
  defer,
  filter,
  from,
  ignoreElements,
  map,
  type Observable,
  toArray,
  repeat,
  Subject,
  takeUntil,
  takeWhile,
  throwError,
} from 'rxjs';
import {
  type EngineCall,
  type EngineStatus,
  isOver,
  openDatabase,
  type StartTime,
} from './database.js';
import { unavailable, unknownCall } from './errors.js';
import { follow$, type Following, replyOf$ } from './follow.js';
import type { Message } from './messages.js';
import {
  checkId,
  checkNewId,
  checkStart,
  continued,
  expiryOf,
  type Order,
  plainOrder,
  type StartOptions,
} from './order.js';
import { awaited$, checkResults } from './suspension.js';
import {
  checkWork,
  work$,
  workEnded,
  type WorkedAgent,
  type WorkNotice,
  type WorkOptions,
} from './work.js';

export interface DbosOptions {
  /**
   * Pins calls to a version of the program. With it, workers only run the calls of their own version, so that a call ends with the agent
   * that it began with; `adopt$` moves the rest. Without it, all workers without one run all calls: after a deploy, calls continue with the
   * new agents.
   */
  readonly version?: string | undefined;
  /** Engines of the same name share their queues. Default: `millrace`. */
  readonly name?: string | undefined;
  /** The schema of DBOS, created if it does not exist. Default: `dbos`. */
  readonly schema?: string | undefined;
  /** Options of the store of the same database, in a schema of its own. */
  readonly store?: PostgresOptions | undefined;
  /** Options of the `pg` pool of the engine, such as `ssl` and `max`, which is at least 3; the store has its own. Default: 10 connections. */
  readonly pool?: PoolConfig | undefined;
}

const rules: Readonly<Record<keyof DbosOptions, Rule>> = {
  version: isText,
  name: isText,
  schema: [
    (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,40}$/.test(value),
    'up to 41 lower-case letters, digits and _',
  ],
  store: isObject,
  pool: [
    (value) => isRecord(value) && (value['max'] === undefined || Number(value['max']) >= 3),
    'options of a pg pool, with a max of at least 3',
  ],
};

/** The place of a call: `abandoned` calls have stopped too many workers. */
export interface CallPlace {
  readonly status: 'delayed' | 'queued' | 'running' | 'ended' | 'failed' | 'aborted' | 'abandoned';
  readonly agent: string;
  readonly sessionId?: string;
  /** The version that the call is pinned to, or that of the worker which ran it last. */
  readonly version?: string;
}

export interface FollowOptions {
  /** The `seq` of the last received event: only later ones are emitted. Default: 0. */
  readonly afterSeq?: number | undefined;
}

/** Calls of agents on any number of processes, over one Postgres database. Opens nothing before the first use. */
export interface DbosEngine {
  /** Journals, sessions and memories, for `attach$`, `replay$`, `steps$`, `calls$` and `keepSessions`. */
  readonly store: DatabaseStore;
  /**
   * Runs calls of agents in this process, once per process, until unsubscribed. Emits what the worker does; failed calls do not end it.
   * Errors with `store` if the database cannot be used at the start, and with `config`. Cold.
   */
  work$(agents: readonly (Agent | WorkedAgent)[], options?: WorkOptions): Observable<WorkNotice>;
  /**
   * Queues a call for an agent of any worker. Emits its id once it is durable, and completes. Errors with `conflict` if there is such a
   * call, `config` for options that JSON cannot express, and `store`. Cold.
   */
  start$(
    agent: string | Pick<Agent, 'name'>,
    input: Input,
    options?: StartOptions,
  ): Observable<string>;
  /**
   * Follows a call of any worker, as `attach$` of the journal, also before it starts. Errors with `invalidResume` if there is no such call,
   * and `aborted` if it was aborted or given up. Cold.
   */
  attach$(callId: string, options?: FollowOptions): Observable<AgentEvent>;
  /** Emits the reply of a call and completes. Errors as the call does, and as `attach$`: with `store`, ask again. Cold. */
  reply$(callId: string): Observable<Reply>;
  /** Interrupts a call; one that has not started ends when it does. A message becomes the text of the reply. Completes once it is durable; errors with `invalidResume` if the call is over. Cold. */
  interrupt$(callId: string, message?: string): Observable<never>;
  /** Adds a user message to the call of a session before its next request, which emits `steered`. Completes and errors as `interrupt$`. Cold. */
  steer$(callId: string, message: string): Observable<never>;
  /** Answers the event `approvalRequested` of a tool with `awaitDecision`. The first answer counts: another one, once the call has continued, errors with
   * `invalidResume` and names the one that counts, and the same one again completes. Completes and errors as `interrupt$`. Cold. */
  decide$(asked: AskedTool, verdict: Verdict): Observable<never>;
  /**
   * Continues a suspended call of a session with the results of its tool calls, by their ids. Emits the id of the call that continues it.
   * Errors with `conflict` if it has an answer, or its time is over. Cold.
   */
  answer$(callId: string, results: Readonly<Record<string, unknown>>): Observable<string>;
  /** Queues a call that failed, was aborted or was given up, to continue after its last step. Emits its id. Others do not change. Cold. */
  resume$(callId: string): Observable<string>;
  /** Forks a call as `fork$` of the journal, and queues the new one for the same agent. Emits its id. Cold. */
  fork$(callId: string, options: Parameters<typeof fork$>[2]): Observable<string>;
  /** Ends a call immediately; running tools may have done their work. Completes and errors as `interrupt$`. Cold. */
  abort$(callId: string): Observable<never>;
  /** Emits the place of a call. Errors with `invalidResume` if there is no such call. Cold. */
  find$(callId: string): Observable<CallPlace>;
  /**
   * Moves the calls that have not ended from an old version, or from none, to that of this engine. Emits their ids. Calls that live
   * workers run stay. Cold.
   */
  adopt$(version?: string): Observable<readonly string[]>;
  /** Removes calls of the engine that ended before a time, from the store and DBOS; suspended ones stay. Emits their ids. Cold. */
  prune$(options: { readonly olderThanMs: number }): Observable<string>;
  /** Stops the worker of this process, and completes when all connections are closed. Cold. */
  close$(): Observable<never>;
}

/** The event `approvalRequested`, or its ids. A decision on an input that another approver edited needs the event. */
export interface AskedTool {
  readonly rootId: string;
  readonly callId: string;
  readonly toolCall: { readonly id: string } & Partial<Pick<ToolCallBlock, 'name' | 'input'>>;
}

/**
 * Opens an engine: DBOS runs calls as workflows, and a store in the same database records their steps. A process may start and follow calls,
 * run them with `work$`, or both.
 *
 * @example
 * ```ts
 * const engine = openDbos('postgres://user:password@host:5432/database');
 * engine.work$([agent]).subscribe(); // in every process that runs calls
 * const callId = await firstValueFrom(engine.start$('clerk', 'Order 50 sacks.', { sessionId: 'ada' }));
 * engine.attach$(callId).pipe(text()).subscribe((delta) => process.stdout.write(delta));
 * ```
 */
export const openDbos = (url: string, options: DbosOptions = {}): DbosEngine => {
  checkOptions('openDbos()', options, rules);
  const { version, name = 'millrace', schema = 'dbos', pool } = options;
  const store = openStore(url, options.store);
  const database = openDatabase({ url, name, schema, pool });
  const pinned = { version };
  const closed$ = new Subject<void>();
  const asked$ = <T>(work: () => Promise<T>): Observable<T> =>
    defer(() => from(work())).pipe(
      catchError((error: unknown) => throwError(() => unavailable(error))),
    );
  const call$ = (callId: string): Observable<EngineCall> =>
    asked$(async () => {
      checkId('A call', callId);
      const found = await database.find(callId);
      if (found === undefined) throw unknownCall(callId);
      return found;
    });
  const started$ = (order: Order, when: StartTime) =>
    asked$(async () => {
      await database.start(plainOrder(order), when);
      return order.callId;
    });
  const send$ = (callId: string, message: Message): Observable<never> =>
    call$(callId).pipe(
      concatMap((call) =>
        asked$(async () => {
          if (isOver(call)) throw isOverError(callId);
          if (message.kind === 'steer' && call.order.sessionId === undefined)
            throw noSession('steer$()', callId);
          await database.send(callId, message);
        }),
      ),
      ignoreElements(),
    );
  const following: Following = {
    store,
    isOver$: (callId) => asked$(() => database.isOver(callId)),
    find$: (callId) => asked$(() => database.find(callId)),
  };
  return {
    store,
    work$: (agents, given = {}) => {
      const worked = checkWork(agents, given);
      return work$({ database, store, version }, worked, given).pipe(takeUntil(closed$));
    },
    start$: (agent, input, given = {}) => {
      checkStart(given);
      const { callId = randomUUID(), sessionId, answerWithinMs, delayMs, ...rest } = given;
      const { version: own = version, ...plain } = rest;
      const agentName = typeof agent === 'string' ? agent : agent.name;
      checkNewId(callId);
      checkId('An agent', agentName);
      if (sessionId !== undefined) checkId('A session', sessionId);
      return started$(
        { callId, agent: agentName, input, options: plain, sessionId, answerWithinMs },
        { delayMs, version: own },
      );
    },
    attach$: (callId, { afterSeq = 0 } = {}) => {
      checkId('A call', callId);
      return follow$(following, callId, afterSeq);
    },
    reply$: (callId) => {
      checkId('A call', callId);
      return replyOf$(following, callId);
    },
    interrupt$: (callId, message) => {
      if (message !== undefined) checkText('interrupt$()', message);
      return send$(callId, { kind: 'interrupt', ...(message === undefined ? {} : { message }) });
    },
    steer$: (callId, input) => {
      checkText('steer$()', input);
      return send$(callId, { kind: 'steer', input });
    },
    decide$: ({ rootId, callId, toolCall: { id, name, input } }, verdict) => {
      const asked = name === undefined || input === undefined ? {} : { asked: { name, input } };
      // A call that has continued takes no other decision.
      return isUndecided$(store.calls, rootId, { callId, toolCallId: id }, verdict).pipe(
        concatMap((isNew) =>
          isNew
            ? send$(rootId, { kind: 'decide', callId, toolCallId: id, ...asked, verdict })
            : EMPTY,
        ),
      );
    },
    answer$: (callId, results) =>
      call$(callId).pipe(
        concatMap(({ order }) => {
          if (order.sessionId === undefined) throw noSession('answer$()', callId);
          return awaited$(store.calls, callId).pipe(
            concatMap((ids) => {
              checkResults(callId, ids, results);
              const next = plainOrder(continued(order, results));
              return asked$(async () => {
                await database.answer(order, next, pinned);
                return next.callId;
              });
            }),
          );
        }),
      ),
    resume$: (callId) =>
      call$(callId).pipe(
        concatMap((call) =>
          asked$(async () => {
            const isStopped = isOver(call) && call.status !== 'SUCCESS';
            if (isStopped) await database.retry(callId, call, version);
            return callId;
          }),
        ),
      ),
    fork$: (callId, given) =>
      call$(callId).pipe(
        concatMap(({ order }) =>
          fork$(store.calls, callId, given).pipe(
            concatMap((forked) => {
              const { sessionId } = given;
              return started$({ ...order, callId: forked, sessionId }, pinned);
            }),
          ),
        ),
      ),
    abort$: (callId) =>
      call$(callId).pipe(
        concatMap((call) =>
          asked$(async () => {
            if (isOver(call)) throw isOverError(callId);
            await (await database.client()).cancelWorkflow(callId);
            await database.send(callId, { kind: 'abort' });
          }),
        ),
        ignoreElements(),
      ),
    find$: (callId) =>
      call$(callId).pipe(
        map(({ status, order: { agent, sessionId }, version: its }) => ({
          status: places[status],
          agent,
          ...(sessionId === undefined ? {} : { sessionId }),
          ...(its === undefined ? {} : { version: its }),
        })),
      ),
    adopt$: (from) => asked$(() => database.adopt(from, version)),
    prune$: (given) => {
      checkOptions('prune$()', given, { olderThanMs: numberFrom(0) }, ['olderThanMs']);
      const some$ = asked$(() => database.over(given.olderThanMs)).pipe(
        concatMap((callIds) => store.calls.driver.removeAll$(callIds).pipe(toArray())),
        map((removed) => removed.flat().map(({ callId }) => callId)),
        concatMap((callIds) => asked$(() => database.remove(callIds)).pipe(map(() => callIds))),
      );
      return some$.pipe(
        repeat(),
        takeWhile((callIds) => callIds.length > 0),
        concatMap((callIds) => callIds),
        filter((callId) => !callId.endsWith(expiryOf(''))),
      );
    },
    close$: () =>
      concat(
        asked$(() => {
          closed$.next();
          return workEnded();
        }).pipe(ignoreElements()),
        store.close$(),
        asked$(() => database.close()).pipe(ignoreElements()),
      ),
  };
};

/** Names the function that was called in an error. */
const openStore = (url: string, options?: PostgresOptions): DatabaseStore => {
  try {
    return openPostgres(url, options);
  } catch (error) {
    if (!isMillraceError(error)) throw error;
    throw new MillraceError(error.code, error.message.replace('openPostgres()', 'openDbos()'));
  }
};

const places: Readonly<Record<EngineStatus, CallPlace['status']>> = {
  DELAYED: 'delayed',
  ENQUEUED: 'queued',
  PENDING: 'running',
  SUCCESS: 'ended',
  ERROR: 'failed',
  CANCELLED: 'aborted',
  MAX_RECOVERY_ATTEMPTS_EXCEEDED: 'abandoned',
};

const isOverError = (callId: string): MillraceError =>
  new MillraceError('invalidResume', `The call '${callId}' is over, and takes no messages.`);

const checkText = (owner: string, message: unknown): void => {
  if (typeof message === 'string' && message.trim() !== '') return;
  throw new MillraceError('config', `${owner} takes a string that is not empty.`);
};

const noSession = (owner: string, callId: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `${owner} needs a call of a session, but '${callId}' has none. Start it with a 'sessionId'.`,
  );
