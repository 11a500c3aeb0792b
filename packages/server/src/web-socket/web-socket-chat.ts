import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { checkOptions, isDelay, oneOf, type Rule } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  noop,
  Observable,
  of,
  startWith,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ChatServer } from '../chat/chat-server.js';
import { movedRequest } from '../mount.js';
import { type ChatProtocol, isPath } from '../chat/protocol.js';
import {
  answerRules,
  answerSocket$,
  type AnswerSocketOptions,
  type ChatSocket,
} from './answer-socket.js';

/** Options of `webSocketChat`. */
export interface WebSocketChatOptions extends Omit<AnswerSocketOptions, 'closing$'> {
  /** The path of the routes for the AI SDK, which is that of the sockets. Default: `/api/chat`. */
  readonly path?: string | undefined;
  /**
   * Who may connect: a `user` of the server, or `anyone`, for clients that authenticate by the headers of their frames. Each
   * request is authenticated in any case. Default: `user`.
   */
  readonly connect?: 'user' | 'anyone' | undefined;
  /**
   * Silence of a client after which it is pinged, in milliseconds. If it is silent for as long again, its socket is
   * destroyed. Default: 15,000.
   */
  readonly heartbeatMs?: number | undefined;
}

/** A protocol that takes over connections of an HTTP server. */
export interface UpgradeProtocol extends ChatProtocol {
  /**
   * Serves the sockets of an HTTP server of Node.js, until it is unsubscribed: then they are closed immediately. Emits nothing. Cold.
   */
  readonly attach$: (
    http: Server,
    server: Pick<ChatServer, 'respond'>,
    options?: AttachOptions,
  ) => Observable<never>;
}

/** Options of `attach$`. */
export interface AttachOptions {
  /** The maximum size of a frame, in bytes; a larger one closes its socket (1009). Default: 4,000,000. */
  readonly maxBytes?: number | undefined;
  /** The path below which the server is mounted, such as `/ai`, as that of `mountServers()`. Default: none. */
  readonly mount?: string | undefined;
  /**
   * Once it emits, no more sockets are accepted, each one closes when its answers have ended (1001), and `attach$` completes when
   * all are closed. Default: never.
   */
  readonly closing$?: Observable<unknown> | undefined;
}

/**
 * Serves clients of the AI SDK 7 with a `WebSocketChatTransport`, over `ws`: `serve(agent, { protocols: [webSocketChat()] })`. They
 * connect to the path of the routes for HTTP. The server checks handshakes and frames as it checks requests.
 */
export const webSocketChat = (options: WebSocketChatOptions = {}): UpgradeProtocol => {
  checkOptions('webSocketChat()', options, rules);
  const { connect = 'user', heartbeatMs = 15_000, path: given = '/api/chat', ...others } = options;
  const path = given.replace(/\/+$/u, '');
  const protocol: ChatProtocol = () => [
    {
      method: 'GET',
      path,
      isPublic: connect === 'anyone',
      accepts: isHandshake,
      answer$: () => of(accepting()),
    },
    { method: 'GET', path, isPublic: connect === 'anyone', answer$: () => of(upgradeRequired()) },
  ];
  const attach$: UpgradeProtocol['attach$'] = (http, server, attaching = {}) =>
    defer(() => {
      const { maxBytes = 4_000_000, closing$ = NEVER, mount = '' } = attaching;
      const place = `${mount.replace(/\/+$/u, '')}${path}`;
      const sockets = new WebSocketServer({
        noServer: true,
        clientTracking: false,
        maxPayload: maxBytes,
      });
      const served$ = (upgrade: Upgrade, handshake: Request): Observable<never> =>
        upgraded$(sockets, upgrade).pipe(
          mergeMap((socket) => {
            const { ended$, ...chatSocket } = chatSocketOf(socket, heartbeatMs);
            const answers$ = answerSocket$(chatSocket, handshake, server, { ...others, closing$ });
            return merge(answers$, ended$);
          }),
        );
      return upgrades$(http, place).pipe(
        takeUntil(closing$),
        mergeMap((upgrade) => {
          const asked = handshakeOf(upgrade.request);
          if (asked === undefined) return refused$(upgrade, new Response(null, { status: 400 }));
          const { pathname, origin, search } = new URL(asked.url);
          const at = pathname.replace(/\/$/u, '');
          if (!isHandshake(asked) || at !== place) return passedOn$(http, upgrade, at, place);
          const handshake =
            path === place ? asked : movedRequest(asked, `${origin}${path}${search}`, mount);
          return from(server.respond(handshake)).pipe(
            tap({ unsubscribe: () => upgrade.socket.destroy() }),
            catchError(() => of(new Response(null, { status: 500 }))),
            concatMap((response) =>
              response.status === accepting().status
                ? served$(upgrade, handshake)
                : refused$(upgrade, response),
            ),
          );
        }),
      );
    });
  return Object.assign(protocol, { attach$ });
};

/** A connection that asks to change its protocol. */
interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** The bytes after the request. */
  readonly head: Buffer;
}

/** The paths of the sockets of a server, of each `attach$`. */
const places = new WeakMap<Server, readonly string[]>();

const upgrades$ = (http: Server, place: string): Observable<Upgrade> =>
  new Observable((subscriber) => {
    places.set(http, [...placesOf(http), place]);
    const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      // Without a listener, an error would end the process.
      socket.on('error', noop);
      subscriber.next({ request, socket, head });
    };
    http.on('upgrade', upgrade);
    return () => {
      http.off('upgrade', upgrade);
      const all = placesOf(http);
      places.set(http, all.toSpliced(all.indexOf(place), 1));
    };
  });

const placesOf = (http: Server): readonly string[] => places.get(http) ?? [];

const isHandshake = ({ headers }: Request): boolean =>
  headers.get('upgrade')?.toLowerCase() === 'websocket';

/** The response of the route if the connection may become a socket. Clients never see it. */
const accepting = (): Response => new Response(null, { status: 204 });

const upgradeRequired = (): Response =>
  Response.json(
    { error: 'Connect with a WebSocket.', code: 'invalidRequest' },
    { status: 426, headers: { upgrade: 'websocket' } },
  );

/** The request of a handshake; `undefined` if its host is malformed. */
const handshakeOf = ({ url = '', headers, socket }: IncomingMessage): Request | undefined => {
  const scheme = socket instanceof TLSSocket ? 'https' : 'http';
  const named = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
  );
  try {
    return new Request(`${scheme}://${headers.host ?? ''}${url}`, { headers: named });
  } catch {
    return undefined;
  }
};

/** Writes a response to a connection, and ends it. */
const refused$ = ({ socket }: Upgrade, response: Response): Observable<never> =>
  from(response.text()).pipe(
    tap((text) => {
      const { status, headers } = response;
      const lines = [
        `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
        ...[...headers].map(([name, value]) => `${name}: ${value}`),
        `content-length: ${Buffer.byteLength(text)}`,
        'connection: close',
      ];
      socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
    }),
    ignoreElements(),
  );

/**
 * Lets the HTTP server answer a request for another protocol or path, unless another listener handles upgrades: a client
 * that offers HTTP/2 must still get its answer. If several `attach$` have no path for it, the first one answers.
 */
const passedOn$ = (
  http: Server,
  { request, socket, head }: Upgrade,
  at: string,
  place: string,
): Observable<never> =>
  defer(() => {
    const own = placesOf(http);
    const taker = own.includes(at) ? at : own[0];
    if (http.listenerCount('upgrade') > own.length || place !== taker) return EMPTY;
    const { rawHeaders, method = 'GET', url = '/' } = request;
    const lines = rawHeaders.flatMap((name, index) =>
      index % 2 === 1 || /^(?:connection|upgrade|http2-settings)$/iu.test(name)
        ? []
        : [`${name}: ${rawHeaders[index + 1] ?? ''}`],
    );
    const text = [`${method} ${url} HTTP/1.1`, ...lines, '', ''].join('\r\n');
    socket.off('error', noop);
    socket.unshift(Buffer.concat([Buffer.from(text, 'latin1'), head]));
    http.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket);
    return EMPTY;
  });

/** Emits the socket, and completes when it is closed. Unsubscribing closes it. */
const upgraded$ = (
  sockets: WebSocketServer,
  { request, socket, head }: Upgrade,
): Observable<WebSocket> =>
  new Observable((subscriber) => {
    const complete = (): void => {
      subscriber.complete();
    };
    if (socket.destroyed) {
      complete();
      return;
    }
    // A handshake that `ws` refuses.
    socket.once('close', complete);
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      socket.off('close', complete);
      webSocket.once('close', complete);
      // The `close` event follows.
      webSocket.on('error', noop);
      subscriber.add(() => {
        webSocket.close(1001, 'The server is closing.');
        webSocket.terminate();
      });
      subscriber.next(webSocket);
    });
  });

/** A socket of `ws`, and what lasts until it is closed. */
export const chatSocketOf = (
  socket: WebSocket,
  heartbeatMs: number,
): ChatSocket & { readonly ended$: Observable<never> } => {
  const drained$ = new Subject<void>();
  const close$ = events$(socket, 'close');
  const sign$ = merge(events$(socket, 'message'), events$(socket, 'pong'), drained$);
  const ping = (): void => {
    socket.ping();
  };
  return {
    message$: events$(socket, 'message').pipe(
      map(([data, isBinary]) => (isBinary === true ? undefined : String(data))),
      takeUntil(close$),
    ),
    send$: (text) =>
      new Observable((subscriber) => {
        let wasFull = false;
        socket.send(text, (error) => {
          // The socket is closing, which ends the answer: stop sending.
          if (error != null) return;
          // Reading is a sign of life: other data may delay the pong of a slow client.
          if (wasFull) drained$.next();
          subscriber.complete();
        });
        wasFull = socket.bufferedAmount > 0;
      }),
    close: (code, reason) => {
      socket.close(code, reason);
    },
    ended$: silent$(sign$, heartbeatMs, ping).pipe(
      tap(() => {
        socket.terminate();
      }),
      takeUntil(close$),
      ignoreElements(),
    ),
  };
};

// `fromEvent` would take the sockets for those of a browser.
const events$ = (socket: WebSocket, name: string): Observable<readonly unknown[]> =>
  new Observable((subscriber) => {
    const listener = (...given: readonly unknown[]): void => {
      subscriber.next(given);
    };
    socket.on(name, listener);
    return () => socket.off(name, listener);
  });

/** Calls `ask` after a period without a sign of life, and emits after a second one. */
const silent$ = (sign$: Observable<unknown>, ms: number, ask: () => void): Observable<unknown> =>
  sign$.pipe(
    startWith(undefined),
    switchMap(() =>
      timer(ms).pipe(
        tap(ask),
        concatMap(() => timer(ms)),
      ),
    ),
    take(1),
  );

const rules: Readonly<Record<keyof WebSocketChatOptions, Rule>> = {
  path: isPath,
  connect: oneOf('user', 'anyone'),
  headers: answerRules.headers,
  maxRequests: answerRules.maxRequests,
  heartbeatMs: isDelay,
};
