import { type SendMessageRequest, TaskState } from '@a2a-js/sdk';
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { type AgentEvent, isEvent, suspensionsIn } from 'millrace';
import type { ApprovalQueue } from '@millrace/server/approvals';
import type { Chat, Visit } from '@millrace/server/chat';
import {
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  endWith,
  filter,
  from,
  ignoreElements,
  last,
  map,
  merge,
  type Observable,
  of,
  type OperatorFunction,
  reduce,
  scan,
  take,
  takeUntil,
  takeWhile,
  tap,
  toArray,
} from 'rxjs';
import { taskResponse } from '../parts.js';
import {
  cancelledResults,
  checkedMessage,
  contextIdOf,
  decisionsIn,
  inputOf,
  resultsIn,
} from './inbound.js';
import { changeOf } from './task-changes.js';
import type { Change, Update } from './task-updates.js';
import { hasEnded, hasStopped, isAtRest, newTask, taskOf, type TaskView } from './task-view.js';

interface TasksOptions {
  readonly approvals: ApprovalQueue | undefined;
  readonly progress: boolean;
}

export interface OpenTask {
  readonly chat: Chat;
  readonly callId: string;
  readonly view: TaskView;
}

/** The tasks of the authenticated user. A task is a call and the calls that resume it. */
export interface Tasks {
  /** Starts a task with a message, or passes the message on to its task, and emits the task. */
  readonly sent$: (params: SendMessageRequest) => Observable<OpenTask>;
  /** Emits a task. Errors with 404 if the user has no such task. */
  readonly found$: (taskId: string) => Observable<OpenTask>;
  /** Emits the task once it has ended or waits for the client. */
  readonly settled$: (open: OpenTask) => Observable<TaskView>;
  /** Emits a task that has not ended. */
  readonly joined$: (taskId: string) => Observable<OpenTask>;
  /** Emits the task once its call has ended. */
  readonly cancelled$: (taskId: string) => Observable<TaskView>;
  /** Emits the task, and then its updates. */
  readonly updates: (open: OpenTask) => OperatorFunction<AgentEvent, Update>;
}

export const createTasks = (visit: Visit, { approvals, progress }: TasksOptions): Tasks => {
  const server: TaskServer = {
    visit,
    approvals,
    pending$: approvals?.requests$ ?? EMPTY,
    progress,
  };
  return {
    found$: (taskId) => found$(server, taskId),
    settled$: (open) => settled$(server, open),
    sent$: (params) =>
      defer(() => {
        if (params.configuration?.taskPushNotificationConfig !== undefined) {
          throw new PushNotificationNotSupportedError();
        }
        return params.message?.taskId ? continued$(server, params) : begun$(visit, params);
      }),
    joined$: (taskId) =>
      found$(server, taskId).pipe(
        map((open) => {
          if (!hasEnded(open.view)) return open;
          throw new UnsupportedOperationError('The task has ended.');
        }),
      ),
    cancelled$: (taskId) => cancelled$(server, taskId),
    updates: (open) => (event$) =>
      concat(
        of(taskResponse(taskOf(open.view))),
        isAtRest(open.view)
          ? EMPTY
          : event$.pipe(
              changes(server, open.view),
              concatMap((change) => change.updates),
            ),
      ),
  };
};

/** The request and the options that all functions of tasks need. */
interface TaskServer extends TasksOptions {
  readonly visit: Visit;
  readonly pending$: ApprovalQueue['requests$'];
}

/** Emits the changes of a task after this view, up to the one that brings it to rest. */
const changes =
  ({ pending$, progress }: TaskServer, view: TaskView): OperatorFunction<AgentEvent, Change> =>
  (event$) => {
    const seen = view.seq;
    const first: Change = { view, updates: [] };
    return event$.pipe(
      filter(({ seq }) => seq > seen),
      connect((new$) =>
        merge(
          pending$.pipe(
            map((pending) => ({ type: 'pending', pending }) as const),
            takeUntil(new$.pipe(ignoreElements(), endWith(undefined))),
          ),
          new$,
        ),
      ),
      scan((change, happening) => changeOf(change.view, happening, progress), first),
      takeWhile((change) => !isAtRest(change.view), true),
    );
  };

const found$ = (server: TaskServer, taskId: string): Observable<OpenTask> =>
  defer(() => {
    if (taskId === '') throw new TaskNotFoundError('There is no such task.');
    return server.visit.chatOf$(taskId);
  }).pipe(
    concatMap((chat) =>
      callsOf$(chat).pipe(
        concatMap((calls) => {
          const at = calls.indexOf(taskId);
          const later = at === -1 ? [] : calls.slice(at + 1);
          const begun = newTask(taskId, chat.id, Date.now());
          return eventsOf$(chat, taskId).pipe(
            map((events) => afterEvents(begun, events)),
            concatMap((view) => resumed$({ chat, callId: taskId, view }, later)),
          );
        }),
      ),
    ),
    concatMap((open) =>
      hasEnded(open.view)
        ? of(open)
        : concat(of([]), server.pending$.pipe(take(1))).pipe(
            last(),
            map((pending) => changeOf(open.view, { type: 'pending', pending }, false)),
            map(({ view }) => ({ ...open, view })),
          ),
    ),
  );

/** Follows a task through the calls that resumed it. A suspended conversation accepts no other calls, so the next call resumes the task. */
const resumed$ = (open: OpenTask, later: readonly string[]): Observable<OpenTask> => {
  const { chat, view } = open;
  const [callId, ...rest] = later;
  if (callId === undefined || !hasStopped(view)) return of(open);
  return eventsOf$(chat, callId).pipe(
    concatMap((events) => {
      if (events.length === 0) return of({ chat, callId, view: reopened(view) });
      // The next call brings no results: the user has asked something else instead.
      if (!events.some(bringsResults)) return of({ ...open, view: takenBack(view) });
      return resumed$({ chat, callId, view: afterEvents(reopened(view), events) }, rest);
    }),
  );
};

const settled$ = (server: TaskServer, { chat, callId, view }: OpenTask): Observable<TaskView> =>
  isAtRest(view)
    ? of(view)
    : defer(() => chat.follow$(callId)).pipe(
        changes(server, view),
        reduce((_, change) => change.view, view),
      );

const begun$ = (visit: Visit, params: SendMessageRequest): Observable<OpenTask> => {
  const message = checkedMessage(params.message);
  const input = inputOf(message);
  const { contextId } = message;
  const chat = visit.chat(contextId === '' ? crypto.randomUUID() : contextIdOf(contextId));
  return concat(
    contextId === '' ? EMPTY : assertFree$(chat),
    chat
      .start$({ input })
      .pipe(map((callId) => ({ chat, callId, view: newTask(callId, chat.id, Date.now()) }))),
  );
};

const continued$ = (server: TaskServer, params: SendMessageRequest): Observable<OpenTask> => {
  const message = checkedMessage(params.message);
  return found$(server, message.taskId).pipe(
    concatMap((open) => {
      const { chat, view } = open;
      if (message.contextId !== '' && message.contextId !== chat.id) {
        throw new RequestMalformedError('The task belongs to another context.');
      }
      if (hasEnded(view)) {
        throw new UnsupportedOperationError(
          'The task has ended. Send the message without its id, with its contextId.',
        );
      }
      const { waiting, isHeld } = view;
      if (isHeld) {
        throw new UnsupportedOperationError('The task waits for a decision. Try again later.');
      }
      if (waiting.length === 0) return steered$(open, params);
      if (waiting.some(({ asks }) => asks === 'approval')) {
        return decided$(server, open, params);
      }
      return chat
        .start$({ input: resultsIn(message, waiting) })
        .pipe(map((next) => ({ chat, callId: next, view: reopened(view) })));
    }),
  );
};

/** Adds a message to a task that is being worked on. */
const steered$ = (open: OpenTask, { message }: SendMessageRequest): Observable<OpenTask> =>
  open.chat.runs$.pipe(
    concatMap(([running]) =>
      running?.callId === open.callId
        ? open.chat.steer$(inputOf(checkedMessage(message)))
        : of(false),
    ),
    map((delivered) => {
      if (delivered) return open;
      throw new UnsupportedOperationError('The task cannot take a message now.');
    }),
  );

const decided$ = (
  server: TaskServer,
  open: OpenTask,
  { message }: SendMessageRequest,
): Observable<OpenTask> =>
  from(decisionsIn(checkedMessage(message), open.view.waiting)).pipe(
    concatMap(({ token, verdict }) => from(server.approvals?.decide(token, verdict) ?? [])),
    toArray(),
    concatMap(() => found$(server, open.view.id)),
  );

const cancelled$ = (server: TaskServer, taskId: string): Observable<TaskView> =>
  found$(server, taskId).pipe(
    concatMap((open) => {
      const { chat, callId, view } = open;
      if (hasEnded(view)) throw new TaskNotCancelableError('The task has ended.');
      if (view.isHeld) throw new TaskNotCancelableError('The task waits for a decision.');
      const isSuspended = view.waiting.some(({ asks }) => asks === 'result');
      const call$ = isSuspended
        ? chat.start$({ input: cancelledResults(view.waiting) })
        : of(callId);
      return call$.pipe(
        concatMap((call) =>
          // Do not follow a call that runs nowhere: it would never end.
          chat
            .stop$(call)
            .pipe(
              concatMap((stopped) =>
                stopped === 0 ? EMPTY : chat.follow$(call).pipe(ignoreElements()),
              ),
            ),
        ),
        endWith(undefined),
        concatMap(() => found$(server, taskId)),
        map((ended) => ended.view),
      );
    }),
  );

/** The task at the start of the call that brings the client's answers. Sequence numbers start at 1 in each call. */
const reopened = (view: TaskView): TaskView => {
  const { message: _question, ...rest } = view;
  return { ...rest, state: TaskState.TASK_STATE_SUBMITTED, isHeld: false, seq: 0 };
};

const takenBack = (view: TaskView): TaskView => ({
  ...view,
  state: TaskState.TASK_STATE_CANCELED,
  waiting: [],
  isHeld: false,
});

const afterEvents = (view: TaskView, events: readonly AgentEvent[]): TaskView =>
  events.reduce((state, event) => changeOf(state, event, false).view, view);

const bringsResults = (event: AgentEvent): boolean =>
  isEvent(event, 'preCall') && event.input.some(({ role }) => role === 'tool');

const eventsOf$ = (chat: Chat, callId: string): Observable<readonly AgentEvent[]> =>
  chat.events$(callId).pipe(toArray());

/** Errors while a conversation waits for results: it accepts no other calls. */
const assertFree$ = ({ history$ }: Chat): Observable<never> =>
  history$().pipe(
    tap(({ messages, running }) => {
      const waiting = suspensionsIn(messages);
      if (running !== undefined || waiting.length === 0) return;
      throw new UnsupportedOperationError(
        waiting.some(({ from: by }) => by === 'client')
          ? 'The conversation waits for an answer: send it with the id of the task that asks.'
          : 'The conversation waits for a decision. Try again later.',
      );
    }),
    ignoreElements(),
  );

/** The calls of a conversation, in their order: those that have ended, then those that run or wait. */
const callsOf$ = (chat: Chat): Observable<readonly string[]> =>
  chat
    .history$()
    .pipe(
      concatMap(({ messages }) =>
        chat.runs$.pipe(
          map((runs) => [
            ...new Set([
              ...messages.map(({ id }) => id.slice(0, id.indexOf('/'))),
              ...runs.map(({ callId }) => callId),
            ]),
          ]),
        ),
      ),
    );
