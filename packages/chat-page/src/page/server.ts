import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  ignoreElements,
  map,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  repeat,
  scan,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { fromFetch } from 'rxjs/fetch';
import { messagesOf } from './message-parts.js';
import type { UiMessage } from './ui-message.js';

/** A conversation on the server. */
export interface History {
  readonly messages: readonly UiMessage[];
  /** Whether an answer is running. */
  readonly isRunning: boolean;
}

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

/** The server refused a request. Its message is for the user. */
export class Refusal extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** The chat server, as the page uses it. */
export interface Server {
  readonly history$: (chatId: string) => Observable<History>;
  /** Asks, and follows the answer to its end over lost connections. Errors with a `Refusal`. */
  readonly ask$: (chatId: string, body: object) => Observable<Followed>;
  /** Joins the running answer. */
  readonly join$: (chatId: string) => Observable<Followed>;
  /** Completes when the running answer was interrupted. */
  readonly stop$: (chatId: string) => Observable<never>;
  /** Emits whether the running answer has taken the message; `false` if it had ended. */
  readonly steer$: (chatId: string, text: string) => Observable<boolean>;
  /** Completes when the verdict counts. Errors with a `Refusal`. */
  readonly decide$: (token: string, verdict: Verdict) => Observable<never>;
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
  const post$ = (path: string, body: object): Observable<Response> => request$(path, posted(body));
  const history$: Server['history$'] = (chatId) =>
    request$(pathOf(chatId)).pipe(
      mergeMap((response): Promise<{ messages?: unknown; running?: unknown }> => response.json()),
      map((body) => ({
        messages: messagesOf(body.messages),
        isRunning: typeof body.running === 'string',
      })),
    );
  const resume$ = (chatId: string, seen: string | undefined): Observable<StreamEvent> =>
    stream$(
      `${pathOf(chatId)}/stream?approvals=token`,
      { headers: seen === undefined ? {} : { 'last-event-id': seen } },
      seen !== undefined,
    );

  /** Reads a stream, and continues it after the last event that has arrived when it is lost. */
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

  return {
    history$,
    ask$: (chatId, body) =>
      follow$(chatId, stream$(`${api}/chat?approvals=token`, posted({ id: chatId, ...body }))),
    join$: (chatId) => follow$(chatId, resume$(chatId, undefined)),
    stop$: (chatId) => post$(`${pathOf(chatId)}/stop`, {}).pipe(ignoreElements()),
    steer$: (chatId, text) =>
      post$(`${pathOf(chatId)}/steer`, { text }).pipe(
        mergeMap((response): Promise<{ delivered?: unknown }> => response.json()),
        map((body) => body.delivered === true),
      ),
    decide$: (token, verdict) =>
      post$(`${api}/approvals`, { token, ...verdict }).pipe(ignoreElements()),
  };
};

const posted = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

// ---------------------------------------------------------------- responses

/** Passes a response on, or errors with the problem that the server reports. */
const accepted = (response: Response): Observable<Response> =>
  response.ok
    ? of(response)
    : from(response.json().catch(() => ({}))).pipe(
        map(({ error }: { error?: unknown }) => {
          const { status } = response;
          if (typeof error === 'string') throw new Refusal(error, status);
          // A proxy in front of a server that restarts, or that server itself.
          if (status > 501) throw new Error('The server is not ready.');
          throw new Refusal(`The server answered ${status}.`, status);
        }),
      );

// ---------------------------------------------------------------- event streams

/** An event of a stream. Without data, the server has nothing to stream. */
interface StreamEvent {
  readonly id?: string;
  readonly data?: string;
}

/** Requests a stream. Errors if it ends before its last event. */
const stream$ = (path: string, init: RequestInit, isResumed = false): Observable<StreamEvent> =>
  fromFetch(path, {
    credentials: 'same-origin',
    ...init,
    selector: (response) =>
      // A server that has forgotten the answer has nothing more of it.
      (isResumed && response.status === 404
        ? of(new Response(null, { status: 204 }))
        : accepted(response)
      ).pipe(
        mergeMap(({ status, body }) => {
          if (status === 204 || body === null) return of({});
          const reader = body.pipeThrough(new TextDecoderStream()).getReader();
          return defer(() => reader.read()).pipe(
            repeat(),
            takeWhile(({ done }) => !done),
            map(({ value = '' }) => value),
            toEvents(),
            untilDone(isResumed),
          );
        }),
      ),
  });

/** Splits the text of server-sent events, wherever it is cut. Comments are skipped. */
export const toEvents = (): OperatorFunction<string, StreamEvent> => (text$) =>
  text$.pipe(
    scan(
      ({ rest }: { readonly rest: string; readonly blocks: readonly string[] }, text) => {
        const blocks = (rest + text).split(/\r?\n\r?\n/u);
        return { rest: blocks.at(-1) ?? '', blocks: blocks.slice(0, -1) };
      },
      { rest: '', blocks: [] },
    ),
    concatMap(({ blocks }) => blocks.map(eventOf)),
    filter(({ data }) => data !== undefined),
  );

const eventOf = (block: string): StreamEvent => {
  const values = (name: string): readonly string[] =>
    block
      .split(/\r?\n/u)
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /u, ''));
  const [id] = values('id');
  const data = values('data');
  return { ...(id && { id }), ...(data.length > 0 && { data: data.join('\n') }) };
};

/** Ends at the protocol's last event. A stream that ends without it errors; an empty one may be of a forgotten answer. */
const untilDone =
  (isResumed: boolean): OperatorFunction<StreamEvent, StreamEvent> =>
  (event$) =>
    defer(() => {
      let last: StreamEvent | undefined;
      return concat(
        event$.pipe(
          tap((event) => (last = event)),
          takeWhile(({ data }) => data !== '[DONE]'),
        ),
        defer(() => {
          if (last?.data === '[DONE]') return EMPTY;
          return last === undefined && isResumed
            ? of({})
            : throwError(() => new Error('The connection was lost.'));
        }),
      );
    });

const chunksOf = (data: string): readonly Followed[] => {
  const chunk: unknown = JSON.parse(data);
  const isChunk = typeof chunk === 'object' && chunk !== null && 'type' in chunk;
  return isChunk && typeof chunk.type === 'string'
    ? [{ type: 'chunk', chunk: { ...chunk, type: chunk.type } }]
    : [];
};
