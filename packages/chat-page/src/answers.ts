import { type AgentEvent, isMillraceError, type Message } from 'millrace';
import { defined } from 'millrace/values';
import { toUiMessageStream } from '@millrace/server';
import type { Chat, Route, ServerOfRoutes, Visit } from '@millrace/server/chat';
import { chunkOf, settledIn } from './uncertain.js';
import {
  asyncScheduler,
  catchError,
  concatMap,
  EMPTY,
  filter,
  from,
  map,
  type Observable,
  subscribeOn,
  takeUntil,
  toArray,
} from 'rxjs';

/** The number of calls, latest first, whose facts the page gets. */
const mostCalls = 50;

/**
 * `GET …/answers` has what the messages of a conversation do not hold: the ends of its answers, their usage, cost, sub-agents and sources, as far
 * as the store keeps their calls.
 */
export const answersRoute = (api: string, masks: ServerOfRoutes['masks']): Route => ({
  method: 'GET',
  path: `${api}/chat/:id/answers`,
  answer$: (visit) => answers$(visit, masks),
});

/** An answer: its id in the page, and its calls. */
interface AnswerCalls {
  readonly id: string;
  readonly callIds: readonly string[];
  /** Those that are read. Default: all. */
  readonly read?: readonly string[];
}

/** The chunks that the page adds to the messages of the history, by their ids. */
const answers$ = (
  { chat, ids: { id = '' }, request, left$ }: Visit,
  masks: ServerOfRoutes['masks'],
): Observable<Response> => {
  const shown = chat(id);
  return shown.history$(new URL(request.url).searchParams.get('at') ?? undefined).pipe(
    concatMap(({ messages, running }) => {
      const settled = settledIn(messages);
      return from(latest(answersIn(messages))).pipe(
        filter(({ callIds }) => running === undefined || !callIds.includes(running)),
        concatMap((answer) =>
          chunksOf$(shown, answer, masks).pipe(
            map((chunks) => {
              const own = settled.filter((it) => answer.callIds.includes(callOf(it.toolCallId)));
              return [answer.id, [...chunks, ...own.map(chunkOf)]] as const;
            }),
          ),
        ),
        takeUntil(left$),
        toArray(),
        map((entries) => Response.json({ answers: Object.fromEntries(entries) })),
      );
    }),
  );
};

/** The answers of a conversation. A call that brings results continues one, and its first call gives it the id. */
const answersIn = (messages: readonly Message[]): readonly AnswerCalls[] => {
  const answers: AnswerCalls[] = [];
  for (const { id, role } of messages) {
    const callId = callOf(id);
    const last = answers.at(-1);
    if (last?.callIds.includes(callId) === true) continue;
    if (role === 'user' || last === undefined) answers.push({ id: callId, callIds: [callId] });
    else answers.push({ ...last, callIds: [...(answers.pop()?.callIds ?? []), callId] });
  }
  return answers;
};

/**
 * The latest answers, whole: a part of an answer would have a part of its usage. Of a last answer with too many calls, the last ones are
 * read, which have its end and what it waits for.
 */
const latest = (answers: readonly AnswerCalls[]): readonly AnswerCalls[] => {
  let calls = 0;
  const first = answers.findLastIndex(({ callIds }) => (calls += callIds.length) > mostCalls);
  const whole = answers.slice(first + 1);
  return whole.length > 0
    ? whole
    : answers.slice(-1).map((it) => ({ ...it, read: it.callIds.slice(-mostCalls) }));
};

/** The id of a message begins with that of its call. */
export const callOf = (messageId: string): string => messageId.split('/', 1)[0] ?? '';

const chunksOf$ = (
  { events$ }: Pick<Chat, 'events$'>,
  { id, callIds, read = callIds }: AnswerCalls,
  masks: ServerOfRoutes['masks'],
): Observable<readonly object[]> =>
  from(read).pipe(
    concatMap((callId) =>
      events$(callId, { areSteps: true }).pipe(
        // Between calls, the process answers others, and notices that this client has left.
        subscribeOn(asyncScheduler),
        toArray(),
        catchError((error: unknown) => {
          // The store no longer has the call, or its record is damaged: the others have facts all the same.
          if (isMillraceError(error) && skipped.has(error.code)) return EMPTY;
          throw error;
        }),
        concatMap((events) =>
          from(untilLastRun(events)).pipe(
            toUiMessageStream({ messageId: id, onDenial: ofUserOrQueue, ...defined(masks) }),
          ),
        ),
        filter(isFact),
      ),
    ),
    toArray(),
  );

/** The reasons of an approval queue are for users, too: no program has written them for the model. */
const ofUserOrQueue: NonNullable<ServerOfRoutes['masks']['onDenial']> = ({ reason, by }) =>
  by === 'user' || ofQueue.has(reason) ? reason : undefined;

const ofQueue: ReadonlySet<string> = new Set([
  'No one decided on it in time.',
  'Its arguments cannot be shown to the reviewer.',
]);

const skipped: ReadonlySet<string> = new Set(['invalidResume', 'invalidState']);

/** The events of a call without the errors of earlier processes, after which it was resumed. */
const untilLastRun = (events: readonly AgentEvent[]): readonly AgentEvent[] =>
  events.filter(
    ({ type, parentId }, at) =>
      type !== 'error' || parentId !== undefined || at === events.length - 1,
  );

/** Whether the history lacks a chunk. */
const isFact = (chunk: {
  readonly type: string;
  readonly id?: string;
  readonly transient?: boolean;
}): boolean =>
  // The message that ends a stopped answer shows that its tools were cut.
  (chunk.type === 'text-start' && chunk.id?.includes('/interrupted/') === true) ||
  (chunk.transient !== true &&
    !/^(?:text|reasoning|tool-input|tool-output-available|file|source|start-step|finish-step|data-(?:suspended|steered|discarded))/u.test(
      chunk.type,
    ));
