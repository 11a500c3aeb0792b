import type { AgentCard, SendMessageRequest } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import {
  MillraceError,
  tool,
  type Tool,
  type ToolContext,
  type ToolOutput,
  restoreAsyncContext,
  type Suspension,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  checkOptions,
  defined,
  isDelay,
  isRecord,
  isText,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  last,
  map,
  type Observable,
  of,
  ReplaySubject,
  type SchedulerLike,
  share,
  switchMap,
  takeWhile,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import { messageOf, textPart } from './parts.js';
import { type A2aLimits, connected$, type Remote, remoteError, requested$ } from './remote.js';
import {
  isAtRest,
  isOwn,
  noTask,
  ofTask,
  outputOf,
  type RemoteProgress,
  type RemoteQuestion,
  type RemoteTask,
  suspendedBy,
  taskAfter,
  type TaskIds,
} from './remote-task.js';

/** Options of `a2aTool`. */
export interface A2aToolOptions {
  /** The name of the tool for the model. It is not taken from the card, which may change. */
  readonly name: string;
  /** Describes to the model when to ask the agent. */
  readonly description: string;
  /** Headers of every request, such as `authorization`. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Further origins that its card may name for requests, such as `https://api.example`. Default: none. */
  readonly origins?: readonly string[] | undefined;
  /**
   * The reaction to an agent that requires input: the model gets the question, and may answer by calling the tool again;
   * or the call is suspended with `{ question, taskId, contextId }`, for `answer$`. Default: `model`.
   */
  readonly onInput?: 'model' | 'suspend' | undefined;
  /** Maximum duration of a run, in milliseconds. Default: `timeouts.toolMs` of the call. */
  readonly timeoutMs?: number | undefined;
  /** Maximum wait for the card, in milliseconds. Default: 10,000. */
  readonly connectMs?: number | undefined;
  /** Limits for what the agent sends. */
  readonly limits?: A2aLimits | undefined;
}

/** A remote agent as a tool. */
export interface A2aTool extends Tool<{ message: string; taskId?: string }> {
  /**
   * Sends the answer to a question for which the tool has suspended its call, and emits the output for `toolResults`. Takes an
   * entry of `reply.suspensions`. Errors with `invalidResume` for that of another tool, and as the tool does. Cold.
   */
  readonly answer$: (suspension: Suspension, answer: string) => Observable<ToolOutput>;
}

/**
 * A remote A2A agent (1.0 or 0.3, over JSON-RPC) as a tool: the model sends it a message, its updates are progress, and
 * its artifacts the result. The card is read at the first run, from the URL of the agent or of the card. An interrupted
 * run cancels the remote task; a lost stream is joined again. Errors are `MillraceError`s with the codes `connection`,
 * `timeout`, `auth`, `rateLimited`, `server`, `invalidResponse`, `tooLarge`,
 * `redirect` and `refused`.
 */
export const a2aTool = (target: string | AgentCard, options: A2aToolOptions): A2aTool => {
  checkOptions('a2aTool()', { target }, { target: isTarget }, ['target']);
  checkOptions('a2aTool()', options, rules, ['name', 'description']);
  const { name, description } = options;
  const { timeoutMs, onInput = 'model', ...given } = defined(options);
  const remote: Remote = {
    ...{ name, target },
    headers: given.headers ?? {},
    origins: given.origins ?? [],
    connectMs: given.connectMs ?? 10_000,
    limits: { card: 100_000, response: 16_000_000, ...defined(given.limits ?? {}) },
  };
  /** All runs share one card. If it could not be read, the next run requests it again. */
  const client$ = connected$(remote).pipe(
    share({
      connector: () => new ReplaySubject(1),
      resetOnRefCountZero: false,
      resetOnComplete: false,
    }),
    restoreAsyncContext(),
  );
  const made = tool({
    name,
    description,
    input,
    ...(timeoutMs !== undefined && { timeoutMs }),
    run: ({ message, taskId = '' }, { idempotencyKey, scheduler }: ToolContext) =>
      client$.pipe(
        concatMap((client) => {
          const request = requestOf(message, { messageId: idempotencyKey, taskId, contextId: '' });
          return run$({ remote, client, scheduler }, request, onInput);
        }),
      ),
  });
  return {
    ...made,
    answer$: (suspension, answer) =>
      defer(() => {
        const { taskId, contextId } = questionOf(name, suspension);
        const ids = { messageId: crypto.randomUUID(), taskId, contextId };
        return client$.pipe(
          concatMap((client) =>
            run$({ remote, client, scheduler: asyncScheduler }, requestOf(answer, ids), 'model'),
          ),
          last(),
          map((output) => {
            if ('content' in output) return output;
            throw new MillraceError('invalidResponse', 'The agent has not answered.');
          }),
        );
      }),
  };
};

const input = jsonSchema({
  type: 'object',
  properties: {
    message: { type: 'string', description: 'The message to the agent.' },
    taskId: {
      type: 'string',
      description: 'Only to answer a question of the agent: the taskId it came with.',
    },
  },
  required: ['message'],
});

const isTarget: Rule = [
  (value) =>
    typeof value === 'string'
      ? URL.canParse(value) && /^https?:$/u.test(new URL(value).protocol)
      : isRecord(value) && Array.isArray(value['supportedInterfaces']),
  'the URL of an agent, or its card',
];

const isOrigin = (value: unknown): boolean =>
  typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value;

const rules: Readonly<Record<keyof A2aToolOptions, Rule>> = {
  name: isText,
  description: isText,
  headers: [
    (value) => isRecord(value) && Object.values(value).every((it) => typeof it === 'string'),
    'an object of strings',
  ],
  origins: [
    (value) => Array.isArray(value) && value.every(isOrigin),
    "a list of origins, such as 'https://api.example'",
  ],
  onInput: oneOf('model', 'suspend'),
  timeoutMs: isDelay,
  connectMs: isDelay,
  limits: [
    (value) => {
      checkOptions("'limits'", value, { card: wholeNumber(1), response: wholeNumber(1) });
      return true;
    },
    'an object of limits',
  ],
};

type MessageIds = Parameters<typeof messageOf>[2];

const requestOf = (message: string, ids: MessageIds): SendMessageRequest => ({
  tenant: '',
  message: messageOf('user', [textPart(message)], ids),
  configuration: undefined,
  metadata: undefined,
});

/** The question of a suspended call. A request alone would not do: any tool, and so a model, may write one. */
const questionOf = (name: string, suspension: Suspension): Omit<RemoteQuestion, 'question'> => {
  const { toolCall, by, request } = suspension;
  const isOwnQuestion = by === suspendedBy && toolCall.name === name && isRecord(request);
  const { taskId, contextId } = isOwnQuestion ? request : {};
  if (typeof taskId === 'string' && typeof contextId === 'string') return { taskId, contextId };
  throw new MillraceError(
    'invalidResume',
    `answer$() needs a suspension of the tool '${name}': an entry of reply.suspensions.`,
  );
};

// ---------------------------------------------------------------- a run

interface Running {
  readonly remote: Remote;
  readonly client: Client;
  readonly scheduler: SchedulerLike;
}

const rejoins = 3;
const rejoinMs = 500;
const cancelMs = 5_000;

/** Sends a message, and emits progress and then the output. */
const run$ = (
  running: Running,
  request: SendMessageRequest,
  onInput: 'model' | 'suspend',
): Observable<RemoteProgress | ToolOutput> =>
  defer(() => {
    const { client, remote, scheduler } = running;
    const tracker = createTracker(request.message);
    /** Joins the task again if its stream has ended before the task. */
    const rest$ = (attempt: number, error?: unknown): Observable<RemoteProgress> => {
      if (isAtRest(tracker.task)) return EMPTY;
      if (tracker.task.taskId === '' || attempt > rejoins || isFinal(error)) {
        return throwError(() =>
          remoteError(remote, error ?? new Error('its stream ended too early')),
        );
      }
      return timer(rejoinMs * attempt, scheduler).pipe(
        switchMap(() =>
          continued(rejoined$(client, tracker), (failure) => rest$(attempt + 1, failure)),
        ),
      );
    };
    const sent$ = requested$((signal) => client.sendMessageStream(request, { signal }));
    return concat(
      continued(tracker.followed$(sent$), (failure) => rest$(1, failure)),
      defer(() => of(outputOf(tracker.task, onInput))),
    ).pipe(
      catchError((cause: unknown) => throwError(() => remoteError(remote, cause))),
      finalize(() => {
        const { task } = tracker;
        if (task.taskId !== '' && !isAtRest(task)) cancel(running, task);
      }),
    );
  });

/** Keeps the state of a remote task up to date. Ignores updates of other tasks than the one that was asked for. */
const createTracker = ({ taskId, contextId }: TaskIds = noTask) => {
  const asked = { taskId, contextId };
  let task = noTask;
  return {
    get task() {
      return task;
    },
    found: (it: Parameters<typeof ofTask>[0]): void => {
      const found = ofTask(it);
      if (isOwn(task, found)) task = found;
    },
    /** Follows the updates of the task until it is at rest, and emits its progress. */
    followed$: (update$: Observable<Parameters<typeof taskAfter>[1]>): Observable<RemoteProgress> =>
      update$.pipe(
        map((update) => {
          const [next, progress] = taskAfter(task, update, asked);
          task = next;
          return { next, progress };
        }),
        takeWhile(({ next }) => !isAtRest(next), true),
        concatMap(({ progress }) => (progress === undefined ? EMPTY : of(progress))),
      ),
  };
};

/** Reads the task again, and follows it if it is not at rest. */
const rejoined$ = (
  client: Client,
  tracker: ReturnType<typeof createTracker>,
): Observable<RemoteProgress> => {
  const { taskId: id } = tracker.task;
  return requested$((signal) => client.getTask({ tenant: '', id }, { signal })).pipe(
    concatMap((found) => {
      tracker.found(found);
      if (isAtRest(tracker.task)) return EMPTY;
      return tracker.followed$(
        requested$((signal) => client.resubscribeTask({ tenant: '', id }, { signal })),
      );
    }),
  );
};

/** Continues a source with another one, which gets the error if the source has failed. */
const continued = <T>(
  source$: Observable<T>,
  rest$: (error?: unknown) => Observable<T>,
): Observable<T> =>
  defer(() => {
    let failure: unknown;
    return concat(
      source$.pipe(
        catchError((error: unknown) => {
          failure = error;
          return EMPTY;
        }),
      ),
      defer(() => rest$(failure)),
    );
  });

/** Whether another attempt would fail in the same way. */
const isFinal = (error: unknown): boolean =>
  error instanceof MillraceError && error.code !== 'connection' && error.code !== 'server';

/** Asks the agent to cancel a task that no one waits for. Its answer does not matter. */
const cancel = ({ client }: Running, { taskId: id }: RemoteTask): void => {
  requested$((signal) => client.cancelTask({ tenant: '', id, metadata: {} }, { signal }))
    .pipe(timeout({ first: cancelMs }))
    .subscribe({ error: () => undefined });
};
