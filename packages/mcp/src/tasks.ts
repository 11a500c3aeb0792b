import {
  isMillraceError,
  MillraceError,
  suspend,
  type Suspension,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { isRecord } from 'millrace/values';
import type { Client, StandardSchemaV1, Tool as ListedTool } from '@modelcontextprotocol/client';
import {
  concatMap,
  defer,
  EMPTY,
  finalize,
  forkJoin,
  identity,
  map,
  type MonoTypeOperatorFunction,
  noop,
  type Observable,
  of,
  repeat,
  retry,
  type SchedulerLike,
  switchMap,
  takeLast,
  takeWhile,
  tap,
  throwError,
  timeout,
  timer,
  using,
} from 'rxjs';
import { answerTo$ } from './client.js';
import { type Ask, isConnection, type Link } from './connection.js';
import { outputOf } from './content.js';
import { shownTo } from './failure.js';
import { createEnter } from './message-reader.js';
import { backOff, type Server } from './server-options.js';
import { cleaned } from './text.js';

/**
 * Work of a server that outlives the request for it. The version of 2025-11-25 has tasks in the protocol: the client asks
 * for one, and for its result. Since 2026-07-28 they are an extension: the server decides, and the task has its result.
 */
export interface Task {
  readonly id: string;
  readonly createdAt: string | undefined;
  readonly status: string;
  readonly message: string | undefined;
  readonly pollMs: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The part of a task that a suspended call keeps: plain JSON. */
interface StoredTask {
  readonly server: string;
  readonly tool: string;
  readonly taskId: string;
  /** Distinguishes it from a later task with its id, as a server that counts from 1 again after a restart has. */
  readonly createdAt?: string;
}

/** The shortest and the longest wait before a task is asked for again, in milliseconds, and the usual one. */
const [leastPollMs, mostPollMs, usualPollMs] = [100, 60_000, 1_000];
/** Failures in a row of a connection while a task is awaited. */
const mostFailures = 5;

/** Whether a tool is called as a task. */
export const runsAsTask = (
  { timeouts }: Server,
  { execution }: ListedTool,
  offered: ReturnType<Client['getServerCapabilities']>,
): boolean => {
  if (offered?.tasks?.requests?.tools?.call === undefined) return false;
  const { taskSupport } = execution ?? {};
  return (
    taskSupport === 'required' || (taskSupport === 'optional' && timeouts.suspendMs !== undefined)
  );
};

/** The task that a server returned instead of a result. */
export const taskIn = (raw: unknown): Task | undefined => {
  if (!isRecord(raw)) return undefined;
  if (raw['resultType'] === 'task') return taskOf(isRecord(raw['task']) ? raw['task'] : raw);
  return isRecord(raw['task']) && !('content' in raw) ? taskOf(raw['task']) : undefined;
};

const taskOf = (fields: Readonly<Record<string, unknown>>): Task | undefined => {
  const {
    taskId: id,
    createdAt,
    status,
    statusMessage,
    pollIntervalMs,
    pollInterval = pollIntervalMs,
  } = fields;
  if (typeof id !== 'string' || typeof status !== 'string') return undefined;
  const asked = typeof pollInterval === 'number' && pollInterval > 0 ? pollInterval : usualPollMs;
  return {
    id,
    createdAt: typeof createdAt === 'string' ? createdAt : undefined,
    status,
    message: typeof statusMessage === 'string' ? cleaned(statusMessage, 500) : undefined,
    pollMs: Math.min(Math.max(asked, leastPollMs), mostPollMs),
    fields,
  };
};

interface Awaiting {
  /** The name of the tool, as the server spells it. */
  readonly tool: string;
  readonly scheduler: SchedulerLike;
  readonly report: (progress: { readonly progress: number; readonly message?: string }) => void;
  /** Called when the task has ended. */
  readonly over?: () => void;
}

/** The output of a task. Unsubscribing cancels the task, unless the call is suspended before. */
export const taskOutput$ = (
  server: Server,
  link: Link,
  task: Task,
  awaiting: Awaiting,
): Observable<ToolOutput> =>
  defer(() => {
    const { suspendMs } = server.timeouts;
    const { scheduler, tool } = awaiting;
    let isOver = false;
    const over = (): void => void (isOver = true);
    const cancel = (): void => {
      if (!isOver) cancelTask$(link, task.id).subscribe({ error: noop });
    };
    const { id: taskId, createdAt } = task;
    const stored: StoredTask = {
      ...{ server: server.name, tool, taskId },
      ...(createdAt !== undefined && { createdAt }),
    };
    return awaited$(server, link, task, { ...awaiting, over }).pipe(
      suspendMs === undefined
        ? identity
        : timeout({
            first: suspendMs,
            scheduler,
            with: () => of(suspend({ mcpTask: stored }, { from: 'program', by })),
          }),
      tap(over),
      whileOpen(link),
      finalize(cancel),
    );
  });

/** The layer that continues a suspended call with the result of its task. */
const by = 'mcp';

/** The task of a suspended call, or undefined if it waits for something else, even if its request names a task. */
export const storedTask = (suspension: Suspension): StoredTask | undefined => {
  const { request } = suspension;
  const stored = suspension.by === by && isRecord(request) ? request['mcpTask'] : undefined;
  if (!isRecord(stored)) return undefined;
  const { server, tool, taskId, createdAt } = stored;
  return typeof server === 'string' && typeof tool === 'string' && typeof taskId === 'string'
    ? { server, tool, taskId, ...(typeof createdAt === 'string' && { createdAt }) }
    : undefined;
};

/** The output of a task that another process may have started. Unsubscribing leaves the task alone. */
export const resumedTask$ = (
  server: Server,
  link: Link,
  { tool, taskId: id, createdAt }: StoredTask,
  scheduler: SchedulerLike,
): Observable<ToolOutput> =>
  polled$(link, { id, createdAt }).pipe(
    patient(server, scheduler),
    switchMap((task) => awaited$(server, link, task, { tool, scheduler, report: noop })),
    whileOpen(link),
  );

export const cancelTask$ = (link: Link, taskId: string): Observable<undefined> =>
  link.request$('to cancel a task', asking('tasks/cancel', { taskId })).pipe(map(() => undefined));

// ---------------------------------------------------------------- polling

/** A result of any form. Its readers check it. */
const anything: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'millrace', validate: (value) => ({ value }) },
};

const asking =
  (method: string, params: Readonly<Record<string, unknown>>): Ask<unknown> =>
  (client, options) =>
    client.request({ method, params: { ...params } }, anything, options);

/** Errors if the server now has another task with this id. */
const polled$ = (
  link: Link,
  { id: taskId, createdAt }: Pick<Task, 'id' | 'createdAt'>,
): Observable<Task> =>
  link.request$('to report the state of a task', asking('tasks/get', { taskId })).pipe(
    map((result) => {
      const fields = isRecord(result) && isRecord(result['task']) ? result['task'] : result;
      const task = isRecord(fields) ? taskOf({ taskId, ...fields }) : undefined;
      const isOther =
        createdAt !== undefined && task?.createdAt !== undefined && task.createdAt !== createdAt;
      if (isOther) throw new ReplacedTask(taskId);
      if (task?.id === taskId) return task;
      throw new MillraceError('invalidResponse', `The state of the task '${taskId}' is not valid.`);
    }),
  );

/** The server has lost the task: another one has its id. */
class ReplacedTask extends MillraceError {
  constructor(taskId: string) {
    super(
      'server',
      `The server has lost the task '${cleaned(taskId, 100)}': another one has its id now. It is unknown whether its work was done.`,
    );
  }
}

const isWorking = ({ status }: Task): boolean =>
  status === 'working' || status === 'input_required';

/** Polls a task until it has ended, then emits its output. */
const awaited$ = (
  server: Server,
  link: Link,
  task: Task,
  { scheduler, report, over = noop }: Awaiting,
): Observable<ToolOutput> =>
  defer(() => {
    let latest = task;
    let polls = 0;
    const answered = new Set<string>();
    const later$ = defer(() =>
      timer(latest.pollMs, scheduler).pipe(switchMap(() => polled$(link, task))),
    ).pipe(patient(server, scheduler));
    return defer(() => (polls++ === 0 ? of(task) : later$)).pipe(
      tap((now) => {
        if (now.message !== undefined && now.message !== latest.message) {
          report({ progress: polls, message: now.message });
        }
        latest = now;
      }),
      concatMap((now) => answeredIn$(server, link, now, answered)),
      repeat(),
      takeWhile((now) => isWorking(now) && !asksInBand(now), true),
      takeLast(1),
      tap({
        next: (now) => {
          if (!isWorking(now)) over();
        },
        // The other task is not to be cancelled.
        error: (error: unknown) => {
          if (error instanceof ReplacedTask) over();
        },
      }),
      switchMap((now) => ended$(server, link, now).pipe(patient(server, scheduler))),
    );
  });

/** A task is an open request between its polls, too: its server may ask the user. */
const whileOpen =
  <T>({ current$ }: Link): MonoTypeOperatorFunction<T> =>
  (task$) =>
    defer(() => {
      const enter = createEnter();
      return using(
        () =>
          current$
            .pipe(switchMap((it) => (isConnection(it) ? it.held$(enter) : EMPTY)))
            .subscribe(),
        () => task$,
      );
    });

/** Repeats a request about a task, which changes nothing, after a failure of the way to the server: the work is done there. */
const patient = <T>(server: Server, scheduler: SchedulerLike): MonoTypeOperatorFunction<T> =>
  retry({
    count: mostFailures,
    resetOnSuccess: true,
    delay: (error: unknown, failures) =>
      isPassing(error)
        ? timer(backOff(server, failures), scheduler)
        : throwError(() => (error instanceof Error ? error : new Error(String(error)))),
  });

/** Whether a failure is one of the way to the server, or of its moment. */
const isPassing = (error: unknown): boolean =>
  isMillraceError(error) &&
  (/^(connection|timeout|rateLimited)$/.test(error.code) || (error.status ?? 0) >= 500);

/** The version of 2025 asks the user while the client waits for the result. */
const asksInBand = ({ status, fields }: Task): boolean =>
  status === 'input_required' && !isRecord(fields['inputRequests']);

/** Answers what a task asks the user, each question once. */
const answeredIn$ = (
  server: Server,
  link: Link,
  task: Task,
  answered: Set<string>,
): Observable<Task> => {
  const { inputRequests: asked } = task.fields;
  if (task.status !== 'input_required' || !isRecord(asked)) return of(task);
  const open = Object.entries(asked).filter(([key]) => !answered.has(key));
  if (open.length === 0) return of(task);
  open.forEach(([key]) => answered.add(key));
  const answers = open.map(([key, question]) =>
    answerTo$(server, question).pipe(map((answer) => [key, answer] as const)),
  );
  return forkJoin(answers).pipe(
    switchMap((all) =>
      link.request$(
        'to answer a question of a task',
        asking('tasks/update', { taskId: task.id, inputResponses: Object.fromEntries(all) }),
      ),
    ),
    map(() => task),
  );
};

const ended$ = (server: Server, link: Link, task: Task): Observable<ToolOutput> => {
  const { id, status, message, fields } = task;
  const { result, error } = fields;
  const why = message === undefined ? '' : `: ${shownTo(server, message)}`;
  if (status === 'cancelled') return of(failed(`The server has cancelled the task${why}.`));
  if (isRecord(result)) return of(outputOf(result, server.limits.result));
  if (isRecord(error))
    return of(failed(`The task failed: ${shownTo(server, String(error['message']))}`));
  return link
    .request$('to return the result of a task', (client, options) =>
      client.getProtocolEra() === 'modern'
        ? Promise.reject(new MillraceError('server', `The task has ended as '${status}'${why}.`))
        : asking('tasks/result', { taskId: id })(client, options),
    )
    .pipe(map((raw) => outputOf(raw, server.limits.result)));
};

const failed = (content: string): ToolOutput => toolOutput({ content, isError: true });
