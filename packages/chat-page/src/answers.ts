import {
  type AgentEvent,
  type Message,
  suspensionsIn,
  toolCallsOf,
  toolOutput,
  toolResults,
} from 'millrace';
import { isUncertain } from 'millrace/journal';
import { isRecord } from 'millrace/values';
import { toUiMessageStream } from '@millrace/server';
import type { Chat, Route, ServerOfRoutes, Visit } from '@millrace/server/chat';
import { badRequest } from './bad-request.js';
import {
  catchError,
  concatMap,
  EMPTY,
  filter,
  from,
  map,
  type Observable,
  throwError,
  toArray,
} from 'rxjs';

/** The latest answers whose facts the page gets. */
const mostAnswers = 50;

/**
 * The routes for what the messages of a conversation do not hold. `GET …/answers` has the ends of its answers, their usage, cost, sub-agents and
 * sources, as far as the store keeps their calls. `POST …/uncertain` takes the user's word for a tool call that was running when its process ended.
 */
export const answerRoutes = (
  api: string,
  { masks }: Pick<ServerOfRoutes, 'masks'>,
): readonly Route[] => [
  { method: 'GET', path: `${api}/chat/:id/answers`, answer$: (visit) => answers$(visit, masks) },
  { method: 'POST', path: `${api}/chat/:id/uncertain`, answer$: settled$ },
];

// ---------------------------------------------------------------- answers

/** An answer: its id in the page, and its calls. */
interface AnswerCalls {
  readonly id: string;
  readonly callIds: readonly string[];
}

/** The chunks that the page adds to the messages of the history, by their ids. */
const answers$ = (
  { chat, ids: { id = '' }, request }: Visit,
  masks: ServerOfRoutes['masks'],
): Observable<Response> => {
  const shown = chat(id);
  return shown.history$(new URL(request.url).searchParams.get('at') ?? undefined).pipe(
    concatMap(({ messages, running }) => {
      const uncertain = uncertainIn(messages);
      return from(answersIn(messages).slice(-mostAnswers)).pipe(
        filter(({ callIds }) => running === undefined || !callIds.includes(running)),
        concatMap((answer) =>
          chunksOf$(shown, answer, masks).pipe(
            map((chunks) => {
              const own = uncertain.filter((it) => answer.callIds.includes(it.callId));
              return [answer.id, [...chunks, ...own.map((it) => it.chunk)]] as const;
            }),
          ),
        ),
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

/** The id of a message begins with that of its call. */
export const callOf = (messageId: string): string => messageId.split('/', 1)[0] ?? '';

const chunksOf$ = (
  { events$ }: Pick<Chat, 'events$'>,
  { id, callIds }: AnswerCalls,
  masks: ServerOfRoutes['masks'],
): Observable<readonly object[]> =>
  from(callIds).pipe(
    concatMap((callId) =>
      events$(callId).pipe(
        untilLastRun,
        toUiMessageStream({ messageId: id, ...masks }),
        filter(isFact),
        // The store no longer has the call.
        catchError(() => EMPTY),
      ),
    ),
    toArray(),
  );

/** The events of a call without the errors of earlier processes, after which it was resumed. */
const untilLastRun = (event$: Observable<AgentEvent>): Observable<AgentEvent> =>
  event$.pipe(
    toArray(),
    concatMap((events) =>
      events.filter(
        ({ type, parentId }, at) =>
          type !== 'error' || parentId !== undefined || at === events.length - 1,
      ),
    ),
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

// ---------------------------------------------------------------- uncertain tool calls

/** A tool call that was running when its process ended. */
interface Uncertain {
  readonly callId: string;
  readonly localId: string;
  readonly toolCallId: string;
  readonly chunk: object;
}

const uncertainIn = (messages: readonly Message[]): readonly Uncertain[] =>
  suspensionsIn(messages)
    .filter(isUncertain)
    .flatMap(({ toolCall: { id: localId, name: toolName } }) => {
      const message = messages.findLast(
        (it) => it.role === 'assistant' && toolCallsOf(it).some(({ id }) => id === localId),
      );
      if (message === undefined) return [];
      const toolCallId = `${message.id}/${localId}`;
      const data = { toolCallId, toolName, localId };
      const chunk = { type: 'data-uncertain', id: toolCallId, data };
      return [{ callId: callOf(message.id), localId, toolCallId, chunk }];
    });

/** The results that the model reads. Only these: the user cannot make up the output of a tool. */
const outcomes = new Map<unknown, unknown>([
  [
    'again',
    toolOutput({
      content:
        'The user has found out that this has not happened. Call the tool again, with the same arguments.',
      isError: true,
    }),
  ],
  ['happened', 'The user has found out that this has happened. Do not call the tool again for it.'],
  [
    'failed',
    toolOutput({
      content:
        'The user has found out that this has failed. Do not call the tool again unless the user asks for it.',
      isError: true,
    }),
  ],
]);

const settled$ = ({ chat, body$, ids: { id = '' } }: Visit): Observable<Response> => {
  const { history$, start$ } = chat(id);
  return body$.pipe(
    concatMap((body) => {
      const { toolCallId, outcome } = isRecord(body) ? body : {};
      const output = outcomes.get(outcome);
      if (output === undefined) {
        return throwError(() => badRequest("'outcome' must be again, happened or failed"));
      }
      return history$().pipe(
        concatMap(({ messages, running }) => {
          // Its first word may run the tool again: a second one would, too.
          if (running !== undefined) throw badRequest('an answer is running', 409);
          const call = uncertainIn(messages).find((it) => it.toolCallId === toolCallId);
          if (call === undefined) {
            throw badRequest('this tool call does not wait for your word', 409);
          }
          return start$({
            // At the head: a result that came before counts.
            input: toolResults({ [call.localId]: output }),
            byProgram: true,
            continues: true,
          });
        }),
      );
    }),
    map((callId) => Response.json({ callId })),
  );
};
