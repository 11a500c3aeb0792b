import { createDemand, fromReadableStream } from 'millrace';
import { checkOptions, having, parsedJson, type Rule, wholeNumber } from 'millrace/values';
import {
  catchError,
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  endWith,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  mergeMap,
  NEVER,
  noop,
  Observable,
  takeUntil,
  tap,
} from 'rxjs';
import type { ChatServer } from '../chat/chat-server.js';
import { fieldOf } from '../inbound.js';
import { type AskingFrame, type ClientFrame, frameOf, requestOf, Violation } from './frames.js';

/** A socket that was accepted, on any runtime. */
export interface ChatSocket {
  /** Emits each message: a string, or anything else if it is not text. Completes once the socket is closed. */
  readonly message$: Observable<unknown>;
  /** Sends a string, and completes once another one may be sent: a socket that is full thus pauses what is sent. */
  readonly send$: (text: string) => Observable<never>;
  readonly close: (code: number, reason: string) => void;
}

/** Options of `answerSocket$`. */
export interface AnswerSocketOptions {
  /** Headers that frames may add to those of the handshake. Default: `authorization`. */
  readonly headers?: readonly string[] | undefined;
  /** The maximum number of requests at the same time; another one is refused. Default: 32. */
  readonly maxRequests?: number | undefined;
  /** Once it emits, frames are no longer read, and the socket closes when its requests have ended (1001). Default: never. */
  readonly closing$?: Observable<unknown> | undefined;
}

/**
 * Answers the frames of a `WebSocketChatTransport` of the AI SDK: each is a request to the server, with the headers and the path
 * of the handshake. Several run at the same time; of each, the next part is read once the earlier one is sent. Emits
 * nothing, and completes once the socket is closed; unsubscribing leaves all answers. Cold.
 */
export const answerSocket$ = (
  socket: ChatSocket,
  handshake: Request,
  { respond }: Pick<ChatServer, 'respond'>,
  options: AnswerSocketOptions = {},
): Observable<never> => {
  checkOptions('answerSocket$()', options, answerRules);
  const { headers = ['authorization'], maxRequests = 32, closing$ = NEVER } = options;
  const send$ = (frame: ServerFrame): Observable<never> => socket.send$(JSON.stringify(frame));
  const answer$ = (frame: AskingFrame): Observable<never> =>
    defer(() => {
      const leaving = new AbortController();
      const request = requestOf(handshake, frame, headers, leaving.signal);
      return response$(respond, request).pipe(
        concatMap((response) => answered$(socket, frame.requestId, response)),
        catchError(() => send$(failed(frame.requestId))),
        finalize(() => {
          leaving.abort();
        }),
      );
    });
  const refuse$ = (requestId: string, errorText: string): Observable<never> =>
    send$({ type: 'error', requestId, errorText });
  return socket.message$.pipe(
    map(frameOf),
    connect((frame$) =>
      concat(
        answers$(frame$.pipe(takeUntil(closing$)), answer$, refuse$, maxRequests),
        closed$(socket, 1001, 'The server is closing.'),
      ).pipe(takeUntil(frame$.pipe(ignoreElements(), endWith(true)))),
    ),
    catchError((cause: unknown) =>
      cause instanceof Violation
        ? closed$(socket, cause.code, cause.message)
        : closed$(socket, 1011, 'The server failed.'),
    ),
  );
};

/** Answers the requests among the frames. Several are answered at the same time. */
const answers$ = (
  frame$: Observable<ClientFrame>,
  answer$: (frame: AskingFrame) => Observable<never>,
  refuse$: (requestId: string, errorText: string) => Observable<never>,
  maxRequests: number,
): Observable<never> =>
  defer(() => {
    const open = new Set<string>();
    let refusals = 0;
    const refused$ = (requestId: string, errorText: string): Observable<never> => {
      // Limit the waiting refusals for a client that does not read.
      if (refusals >= maxRequests) throw new Violation(1008, 'Too many requests.');
      refusals += 1;
      return refuse$(requestId, errorText).pipe(
        finalize(() => {
          refusals -= 1;
        }),
      );
    };
    return frame$.pipe(
      mergeMap((frame) => {
        const { type, requestId } = frame;
        if (type === 'abort') return EMPTY;
        if (open.has(requestId)) throw new Violation(1008, "The 'requestId' is already in use.");
        if (type === 'malformed') return refused$(requestId, frame.errorText);
        if (open.size >= maxRequests) {
          return refused$(requestId, 'Too many requests at the same time.');
        }
        open.add(requestId);
        const aborted$ = frame$.pipe(filter((it) => isAbortOf(it, requestId)));
        return answer$(frame).pipe(
          takeUntil(aborted$),
          finalize(() => open.delete(requestId)),
        );
      }),
    );
  });

type ServerFrame =
  | { readonly type: 'start' | 'end' | 'no-active'; readonly requestId: string }
  | { readonly type: 'error'; readonly requestId: string; readonly errorText: string };

const isAbortOf = ({ type, requestId }: ClientFrame, id: string): boolean =>
  type === 'abort' && requestId === id;

const closed$ = ({ close }: ChatSocket, code: number, reason: string): Observable<never> =>
  defer(() => {
    close(code, reason);
    return EMPTY;
  });

const failed = (requestId: string): ServerFrame => ({
  type: 'error',
  requestId,
  errorText: 'The server failed.',
});

/** Emits the response. If it arrives after its client has left, its body is cancelled. */
const response$ = (respond: ChatServer['respond'], request: Request): Observable<Response> =>
  new Observable((subscriber) => {
    respond(request).then(
      (response) => {
        if (subscriber.closed) void response.body?.cancel();
        subscriber.next(response);
        subscriber.complete();
      },
      (error: unknown) => {
        subscriber.error(error);
      },
    );
  });

const answered$ = (
  { send$ }: Pick<ChatSocket, 'send$'>,
  requestId: string,
  response: Response,
): Observable<never> => {
  const frame$ = (frame: ServerFrame): Observable<never> => send$(JSON.stringify(frame));
  const { body, status, headers } = response;
  if (status === 204) return frame$({ type: 'no-active', requestId });
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!response.ok || !isStream || body === null) {
    return from(response.text()).pipe(
      concatMap((text) => {
        const error = fieldOf(parsedJson(text), 'error');
        return frame$(
          typeof error === 'string'
            ? { type: 'error', requestId, errorText: error }
            : failed(requestId),
        );
      }),
    );
  }
  const id = JSON.stringify(requestId);
  // The chunk is already JSON, and is not encoded again.
  const chunk$ = (chunk: string, sequence: number): Observable<never> =>
    send$(`{"type":"chunk","requestId":${id},"sequence":${sequence},"chunk":${chunk}}`);
  return concat(
    frame$({ type: 'start', requestId }),
    sent$(body, chunk$),
    frame$({ type: 'end', requestId }),
  ).pipe(
    // The client may leave before the body is read.
    finalize(() => void body.cancel().catch(noop)),
  );
};

/** Sends the data of each server-sent event, with its number from 0. Reads the body only as fast as that. */
const sent$ = (
  body: ReadableStream<Uint8Array>,
  chunk$: (chunk: string, sequence: number) => Observable<never>,
): Observable<never> =>
  defer(() => {
    const demand = createDemand(1);
    const read = eventReader();
    let sequence = 0;
    return fromReadableStream(body, demand).pipe(
      tap(() => {
        demand.backlog(1);
      }),
      concatMap((piece) =>
        concat(
          from(read(piece)).pipe(concatMap((chunk) => chunk$(chunk, sequence++))),
          defer(() => {
            demand.backlog(0);
            return EMPTY;
          }),
        ),
      ),
    );
  });

/** Returns the data of the events that a piece of the stream completes, without comments and the final `[DONE]`. */
const eventReader = (): ((piece: Uint8Array) => readonly string[]) => {
  const decoder = new TextDecoder();
  let rest = '';
  return (piece) => {
    const events = `${rest}${decoder.decode(piece, { stream: true })}`.split('\n\n');
    rest = events.pop() ?? '';
    return events.flatMap((event) => {
      const data = /(?<=^|\n)data: ([^\n]*)/u.exec(event)?.[1];
      return data === undefined || data === '[DONE]' ? [] : [data];
    });
  };
};

const isNames: Rule = [
  (value) => Array.isArray(value) && value.every((name) => /^[\w-]+$/u.test(String(name))),
  "a list of names of headers, such as 'authorization'",
];

export const answerRules: Readonly<Record<keyof AnswerSocketOptions, Rule>> = {
  headers: isNames,
  maxRequests: wholeNumber(1),
  closing$: having('subscribe', 'an Observable'),
};
