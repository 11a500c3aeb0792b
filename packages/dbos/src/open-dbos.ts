import { randomUUID } from 'node:crypto';
import { type Agent, type Input, isMillraceError, MillraceError } from 'millrace';
import { fork$, isUndecided$ } from 'millrace/journal';
import { checkOptions, isObject, isRecord, isText, numberFrom, type Rule } from 'millrace/values';
import { type DatabaseStore, openPostgres, type PostgresOptions } from '@millrace/store/postgres';
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
import { type EngineCall, type EngineStatus, isOver, openDatabase } from './database.js';
import type { CallPlace, DbosEngine, DbosOptions } from './engine.js';
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
  type StartTime,
} from './order.js';
import { awaited$, checkResults } from './suspension.js';
import { workEnded } from './launch.js';
import { type Engine, work$ } from './work.js';
import { checkWork } from './worked-agents.js';

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
  const engine: Engine = { store, database, version };
  const closed$ = new Subject<void>();
  return {
    store,
    work$: (agents, given = {}) => {
      const worked = checkWork(agents, given);
      return work$(engine, worked, given).pipe(takeUntil(closed$));
    },
    ...starting(engine),
    ...following(engine),
    ...steering(engine),
    ...upkeep(engine),
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

const asked$ = <T>(work: () => Promise<T>): Observable<T> =>
  defer(() => from(work())).pipe(
    catchError((error: unknown) => throwError(() => unavailable(error))),
  );

const callIn$ = ({ database }: Engine, callId: string): Observable<EngineCall> =>
  asked$(async () => {
    checkId('A call', callId);
    const found = await database.find(callId);
    if (found === undefined) throw unknownCall(callId);
    return found;
  });

/** Queues calls: new ones, and those that continue others. */
const starting = (engine: Engine): Pick<DbosEngine, 'start$' | 'answer$' | 'resume$' | 'fork$'> => {
  const { store, database, version } = engine;
  const pinned = { version };
  const started$ = (order: Order, when: StartTime) =>
    asked$(async () => {
      await database.start(plainOrder(order), when);
      return order.callId;
    });
  return {
    start$: (agent, input, given = {}) => {
      const { delayMs, version: own = version } = given;
      return started$(orderOf(agent, input, given), { delayMs, version: own });
    },
    answer$: (callId, results) =>
      callIn$(engine, callId).pipe(
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
      callIn$(engine, callId).pipe(
        concatMap((call) =>
          asked$(async () => {
            const isStopped = isOver(call) && call.status !== 'SUCCESS';
            if (isStopped) await database.retry(callId, call, version);
            return callId;
          }),
        ),
      ),
    fork$: (callId, given) =>
      callIn$(engine, callId).pipe(
        concatMap(({ order }) =>
          fork$(store.calls, callId, given).pipe(
            concatMap((forked) => {
              const { sessionId } = given;
              return started$({ ...order, callId: forked, sessionId }, pinned);
            }),
          ),
        ),
      ),
  };
};

const orderOf = (agent: string | Pick<Agent, 'name'>, input: Input, given: StartOptions): Order => {
  checkStart(given);
  const { callId = randomUUID(), sessionId, answerWithinMs, ...rest } = given;
  const { delayMs: _, version: __, ...options } = rest;
  const name = typeof agent === 'string' ? agent : agent.name;
  checkNewId(callId);
  checkId('An agent', name);
  if (sessionId !== undefined) checkId('A session', sessionId);
  return { callId, agent: name, input, options, sessionId, answerWithinMs };
};

/** Reads calls of any worker. */
const following = (engine: Engine): Pick<DbosEngine, 'attach$' | 'reply$' | 'find$'> => {
  const { store, database } = engine;
  const followed: Following = {
    store,
    isOver$: (callId) => asked$(() => database.isOver(callId)),
    find$: (callId) => asked$(() => database.find(callId)),
  };
  return {
    attach$: (callId, { afterSeq = 0 } = {}) => {
      checkId('A call', callId);
      return follow$(followed, callId, afterSeq);
    },
    reply$: (callId) => {
      checkId('A call', callId);
      return replyOf$(followed, callId);
    },
    find$: (callId) =>
      callIn$(engine, callId).pipe(
        map(({ status, order: { agent, sessionId }, version: its }) => ({
          status: places[status],
          agent,
          ...(sessionId === undefined ? {} : { sessionId }),
          ...(its === undefined ? {} : { version: its }),
        })),
      ),
  };
};

/** Sends messages to calls of any worker. */
const steering = (
  engine: Engine,
): Pick<DbosEngine, 'interrupt$' | 'steer$' | 'decide$' | 'abort$'> => {
  const { store, database } = engine;
  const sent$ = (callId: string, send: (call: EngineCall) => Promise<void>): Observable<never> =>
    callIn$(engine, callId).pipe(
      concatMap((call) =>
        asked$(async () => {
          if (isOver(call)) throw isOverError(callId);
          await send(call);
        }),
      ),
      ignoreElements(),
    );
  const send$ = (callId: string, message: Message): Observable<never> =>
    sent$(callId, async ({ order }) => {
      if (message.kind === 'steer' && order.sessionId === undefined) {
        throw noSession('steer$()', callId);
      }
      await database.send(callId, message);
    });
  return {
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
    abort$: (callId) =>
      sent$(callId, async () => {
        await (await database.client()).cancelWorkflow(callId);
        await database.send(callId, { kind: 'abort' });
      }),
  };
};

const upkeep = ({ store, database, version }: Engine): Pick<DbosEngine, 'adopt$' | 'prune$'> => ({
  adopt$: (executor) => asked$(() => database.adopt(executor, version)),
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
});

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
