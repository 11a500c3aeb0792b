import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  map,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  retry,
  tap,
  throwError,
} from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import { type Fields, fieldsOf, listOf, textOf } from './fields.js';
import { messagesOf } from './message-parts.js';
import { accepted, answer$, events$, Refusal, type StreamEvent } from './responses.js';
import type { SettledAs, UiMessage } from './ui-message.js';

/** The ids of the versions of messages that have several, oldest first, by the id of each that is shown. */
export type Branches = Readonly<Record<string, readonly string[]>>;

/** One branch of a conversation on the server. */
export interface History {
  readonly messages: readonly UiMessage[];
  readonly branches: Branches;
  /** The server's last message. */
  readonly head?: string | undefined;
  /** The call whose answer is running. */
  readonly running?: string | undefined;
}

/** A conversation in the list. */
export interface ChatSummary {
  readonly id: string;
  readonly title: string;
  /** In milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** A part of the list of conversations: newest first. */
export interface ChatPage {
  readonly chats: readonly ChatSummary[];
  /** The `before` of the next part. Absent at the end. */
  readonly next?: string | undefined;
}

/** The report of the server to all tabs of a conversation: its state, at first and after each change. */
export type Change =
  | { readonly isDeleted: true }
  | {
      readonly isDeleted: false;
      readonly head?: string | undefined;
      readonly running?: string | undefined;
      readonly title?: string | undefined;
    };

/** News for a client that follows an answer. */
export type Followed =
  | {
      readonly type: 'chunk';
      readonly chunk: { readonly type: string; readonly messageId?: unknown };
    }
  /** The connection was lost, and is tried again. */
  | { readonly type: 'lost' }
  /** It is back. */
  | { readonly type: 'back' }
  /** The server has no such answer to follow any more: load the history. */
  | { readonly type: 'gone' };

export interface Verdict {
  readonly approved: boolean;
  readonly input?: unknown;
  readonly reason?: string;
}

/** The chunks that add to answers what the history does not have, by their ids. */
export type Facts = Readonly<Record<string, readonly unknown[]>>;

/** The chat server, as the page uses it. */
export interface Server {
  /** Emits the branch of a message, or the one that is continued by default. */
  readonly history$: (chatId: string, at?: string) => Observable<History>;
  /** Emits the branch of a message, which is continued by default from now on. */
  readonly switch$: (chatId: string, at: string) => Observable<History>;
  /** Emits the facts of the answers of a branch. Tries again up to five times. Errors with what has failed. */
  readonly facts$: (chatId: string, at?: string) => Observable<Facts>;
  /** Completes when the call that continues the answer has begun. */
  readonly settle$: (
    chatId: string,
    body: { readonly outcomes: Readonly<Record<string, SettledAs>> },
  ) => Observable<never>;
  /** Emits the titles in the schemas of tools; nothing if they cannot be loaded. */
  readonly tools$: Observable<Fields>;
  readonly chats$: (query: {
    readonly search: string;
    readonly limit: number;
    readonly before?: string | undefined;
  }) => Observable<ChatPage>;
  readonly rename$: (chatId: string, title: string) => Observable<never>;
  readonly delete$: (chatId: string) => Observable<never>;
  /** Follows a conversation over lost connections. Errors with a `Refusal`. */
  readonly changes$: (chatId: string) => Observable<Change>;
  /** Asks, and follows the answer to its end over lost connections. Errors with a `Refusal`. */
  readonly ask$: (chatId: string, body: object) => Observable<Followed>;
  /** Joins the running answer. */
  readonly join$: (chatId: string) => Observable<Followed>;
  /** Completes when the running answer was interrupted. */
  readonly stop$: (chatId: string) => Observable<never>;
  /** Emits whether the running answer has taken the message; `false` if it had ended. */
  readonly steer$: (chatId: string, text: string) => Observable<boolean>;
  readonly rate$: (chatId: string, callId: string, isGood: boolean) => Observable<never>;
  /** Completes when the verdict counts. Errors with a `Refusal`. */
  readonly decide$: (token: string, verdict: Verdict) => Observable<never>;
  /** Emits when what has failed should be tried again, after so many failures. */
  readonly wait$: ServerOptions['wait$'];
}

/** The surroundings of the page. */
export interface ServerOptions {
  /** The path of the chat server's routes, such as `/api`. */
  readonly api: string;
  /** Emits when a lost connection should be tried again, after so many failures. */
  readonly wait$: (failures: number) => Observable<unknown>;
}

export const createServer = ({ api, wait$ }: ServerOptions): Server => {
  const pathOf = (chatId: string): string => `${api}/chat/${encodeURIComponent(chatId)}`;
  const request$ = (path: string, init: RequestInit = {}): Observable<Response> =>
    fromFetch(path, { credentials: 'same-origin', ...init, selector: accepted });
  const post$ = (path: string, body: object): Observable<never> =>
    request$(path, posted(body)).pipe(ignoreElements());
  const read$ = (path: string, init?: RequestInit): Observable<Fields> =>
    request$(path, init).pipe(
      mergeMap((response): Promise<unknown> => response.json()),
      map(fieldsOf),
    );
  const history$: Server['history$'] = (chatId, at) =>
    read$(`${pathOf(chatId)}${queryOf({ at })}`).pipe(map(historyOf));
  const resume$ = (chatId: string, seen: string | undefined): Observable<StreamEvent> =>
    answer$(
      `${pathOf(chatId)}/stream?approvals=token`,
      { headers: seen === undefined ? {} : { 'last-event-id': seen } },
      seen !== undefined,
    );

  const follow$ = following({ history$, resume$, wait$ });

  return {
    wait$,
    history$,
    switch$: (chatId, at) => read$(`${pathOf(chatId)}/head`, posted({ at })).pipe(map(historyOf)),
    facts$: (chatId, at) =>
      defer(() => {
        let failures = 0;
        return read$(`${pathOf(chatId)}/answers${queryOf({ at })}`).pipe(
          // Each try reads the records of many calls.
          retried(() => wait$((failures += 1)), mostFactRetries),
          map(factsOf),
        );
      }),
    tools$: read$(`${api}/tool-titles`).pipe(
      map(({ tools }) => fieldsOf(tools)),
      // The words of names stand for them.
      catchError(() => EMPTY),
    ),
    settle$: (chatId, body) => post$(`${pathOf(chatId)}/uncertain`, body),
    chats$: ({ search, before, limit }) =>
      read$(`${api}/chat${queryOf({ search, before, limit: `${limit}` })}`).pipe(map(chatPageOf)),
    rename$: (chatId, title) =>
      request$(pathOf(chatId), { ...posted({ title }), method: 'PATCH' }).pipe(ignoreElements()),
    delete$: (chatId) => request$(pathOf(chatId), { method: 'DELETE' }).pipe(ignoreElements()),
    changes$: (chatId) => reconnecting$(events$(`${pathOf(chatId)}/changes`), wait$),
    ask$: (chatId, body) =>
      follow$(chatId, answer$(`${api}/chat?approvals=token`, posted({ id: chatId, ...body }))),
    join$: (chatId) => follow$(chatId, resume$(chatId, undefined)),
    stop$: (chatId) => post$(`${pathOf(chatId)}/stop`, {}),
    steer$: (chatId, text) =>
      read$(`${pathOf(chatId)}/steer`, posted({ text })).pipe(
        map(({ delivered }) => delivered === true),
      ),
    rate$: (chatId, callId, isGood) => post$(`${pathOf(chatId)}/feedback`, { callId, isGood }),
    decide$: (token, verdict) => post$(`${api}/approvals`, { token, ...verdict }),
  };
};

interface Resuming extends Pick<ServerOptions, 'wait$'>, Pick<Server, 'history$'> {
  /** Continues a stream after an event. */
  readonly resume$: (chatId: string, seen: string) => Observable<StreamEvent>;
}

/** Reads a stream, and continues it after the last event that has arrived when it is lost. */
const following = ({ history$, resume$, wait$ }: Resuming) => {
  const follow$ = (
    chatId: string,
    source$: Observable<StreamEvent>,
    before: { readonly seen?: string; readonly failures: number } = { failures: 0 },
  ): Observable<Followed> =>
    defer(() => {
      let { seen, failures } = before;
      return source$.pipe(
        concatMap((event): readonly Followed[] => {
          const isBack = failures > 0;
          failures = 0;
          seen = event.id ?? seen;
          return [
            ...(isBack ? [{ type: 'back' } as const] : []),
            ...(event.data === undefined ? [{ type: 'gone' } as const] : chunksOf(event.data)),
          ];
        }),
        tap((it) => {
          // A server that shuts down: the next one resumes the answer.
          if (it.type === 'chunk' && it.chunk.type === 'abort' && !('reason' in it.chunk)) {
            throw new Error('The server has shut down.');
          }
        }),
        catchError((error: unknown) => {
          if (error instanceof Refusal) return throwError(() => error);
          // Without any event, only the history shows whether the question has arrived.
          const again$ =
            seen === undefined
              ? history$(chatId).pipe(map((): StreamEvent => ({})))
              : resume$(chatId, seen);
          return concat(
            of({ type: 'lost' } as const),
            wait$(failures).pipe(ignoreElements()),
            follow$(chatId, again$, { ...(seen && { seen }), failures: failures + 1 }),
          );
        }),
      );
    });
  return follow$;
};

/** Follows the changes of a conversation, and connects again when they are lost. */
const reconnecting$ = (
  event$: Observable<StreamEvent>,
  wait$: ServerOptions['wait$'],
): Observable<Change> =>
  defer(() => {
    let failures = 0;
    return concat(
      event$,
      throwError(() => new Error('The connection was lost.')),
    ).pipe(
      tap(() => (failures = 0)),
      retried(() => wait$((failures += 1))),
      concatMap(({ data }) => (data === undefined ? [] : [changeOf(JSON.parse(data))])),
    );
  });

const mostFactRetries = 5;

/** Subscribes again to what has failed, up to so many times, once `again$` has completed, unless the server refuses it for good. */
const retried = <T>(
  again$: () => Observable<unknown>,
  count = Infinity,
): MonoTypeOperatorFunction<T> =>
  retry({
    count,
    delay: (error: unknown) =>
      // Others, such as too many requests, pass.
      error instanceof Refusal && error.status < 429
        ? throwError(() => error)
        : concat(again$().pipe(ignoreElements()), of(0)),
  });

const posted = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** The parameters of a query that have a value. */
const queryOf = (values: Readonly<Record<string, string | undefined>>): string => {
  const query = Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return query.length === 0 ? '' : `?${query.join('&')}`;
};

const stringIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

const historyOf = ({ messages, branches, head, running }: Fields): History => ({
  messages: messagesOf(messages),
  branches: Object.fromEntries(
    Object.entries(fieldsOf(branches)).map(([id, ids]) => [id, listOf(ids).map(textOf)]),
  ),
  ...{ head: stringIn(head), running: stringIn(running) },
});

const factsOf = ({ answers }: Fields): Facts =>
  Object.fromEntries(Object.entries(fieldsOf(answers)).map(([id, chunks]) => [id, listOf(chunks)]));

const chatPageOf = ({ chats, next }: Fields): ChatPage => ({
  chats: listOf(chats).map((chat) => {
    const { id, title, updatedAt } = fieldsOf(chat);
    return { id: textOf(id), title: textOf(title), updatedAt: Number(updatedAt) };
  }),
  next: stringIn(next),
});

const changeOf = (data: unknown): Change => {
  const { deleted, head, running, title } = fieldsOf(data);
  return deleted === true
    ? { isDeleted: true }
    : {
        isDeleted: false,
        ...{ head: stringIn(head), running: stringIn(running), title: stringIn(title) },
      };
};

const chunksOf = (data: string): readonly Followed[] => {
  const chunk: unknown = JSON.parse(data);
  const isChunk = typeof chunk === 'object' && chunk !== null && 'type' in chunk;
  return isChunk && typeof chunk.type === 'string'
    ? [{ type: 'chunk', chunk: { ...chunk, type: chunk.type } }]
    : [];
};
