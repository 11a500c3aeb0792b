import { createServer, type Server } from 'node:http';
import { type Agent, MillraceError } from 'millrace';
import { checkOptions, defined, isDelay, isText, type Rule } from 'millrace/values';
import {
  AsyncSubject,
  concat,
  defer,
  EMPTY,
  ignoreElements,
  merge,
  noop,
  Observable,
  race,
  ReplaySubject,
  type Subject,
  Subscription,
  tap,
  timer,
} from 'rxjs';
import {
  chatServer,
  type ChatServer,
  type ChatServerOptions,
  checkServer,
} from '../chat/chat-server.js';
import type { ChatProtocol } from '../chat/protocol.js';
import { toNodeListener } from './listener.js';
import { printError } from './print-error.js';
import type { UpgradeProtocol } from '../web-socket/web-socket-chat.js';

/** Options of `serve`. Of its `protocols`, `webSocketChat()` of `@millrace/server/web-socket` takes over connections. */
export interface ServeOptions extends ChatServerOptions {
  /** Default: 3000. With 0, the system chooses a free one. */
  readonly port?: number | undefined;
  /** The address to listen on. Anything other than a loopback address requires `user`. Default: `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Signals on which the server closes, and the Observable completes. Default: `SIGTERM`. */
  readonly signals?: readonly NodeJS.Signals[] | undefined;
  /** Maximum wait for running calls when the server closes, in milliseconds. Default: 30,000. */
  readonly closeMs?: number | undefined;
}

/** A server that listens. */
export interface Served {
  /** Such as `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly port: number;
  /** Closes it as a signal does: refuses new calls, waits for the running ones to finish their step, and completes. */
  readonly close$: Observable<never>;
}

/**
 * Serves an agent over HTTP, with the routes of `chatServer`. Emits once it listens, and completes once it is closed by
 * a signal or by `close$`. Unsubscribing closes it immediately, and cuts every call. Errors with `config` if it cannot
 * listen. Cold.
 */
export const serve = (agent: Agent, options: ServeOptions = {}): Observable<Served> => {
  const { port = 3_000, host = '127.0.0.1', signals = ['SIGTERM'], closeMs, ...given } = options;
  checkOptions('serve()', { port, host, signals, closeMs }, rules);
  if (given.user === undefined && !thisMachine.includes(host)) {
    throw new MillraceError(
      'config',
      `serve() would be open to everyone at '${host}'. Authenticate users with 'user', or leave out 'host'.`,
    );
  }
  checkServer('serve()', agent, given);
  const { maxBytes, protocols = [] } = given;
  const upgrades = protocols.filter(isUpgradeProtocol);
  return new Observable((subscriber) => {
    // Create the chat server only once the port is open, because it resumes calls immediately.
    let chats: ChatServer | undefined;
    const http = createServer(
      toNodeListener({
        respond: (request) =>
          chats?.respond(request) ?? Promise.resolve(new Response(null, { status: 503 })),
      }),
    );
    const drained$ = new ReplaySubject<void>(1);
    const close$ = closed$(
      http,
      () => chats?.close$(defined({ timeoutMs: closeMs })),
      drained$,
    ).pipe(
      tap({
        error: (error: unknown) => {
          subscriber.error(error);
        },
        complete: () => {
          subscriber.complete();
        },
      }),
    );
    subscriber.add(onSignals(signals, close$));
    subscriber.add(() => {
      http.close();
      http.closeAllConnections();
      chats?.close$({ timeoutMs: 0 }).subscribe({ error: noop });
    });
    http.once('error', (cause) => {
      subscriber.error(cannotListen(cause, host, port));
    });
    http.listen(port, host, () => {
      const server = chatServer(agent, { ...given, onError: given.onError ?? printError });
      chats = server;
      const upgrading = { ...(maxBytes && { maxBytes }), closing$: drained$ };
      const attached = upgrades.map(({ attach$ }) => attach$(http, server, upgrading));
      subscriber.add(merge(...attached).subscribe());
      const at = portOf(http);
      const name = host.includes(':') ? `[${host}]` : host;
      subscriber.next({ url: `http://${name}:${at}`, port: at, close$ });
    });
  });
};

/** Closes a server once its calls are drained, and completes once its responses have been written. */
const closed$ = (
  http: Server,
  drain: () => Observable<never> | undefined,
  drained$: Subject<void>,
): Observable<never> => {
  let isClosing = false;
  http.on('request', (_request, response) => {
    response.once('close', () => {
      if (isClosing) setImmediate(() => http.closeIdleConnections());
    });
  });
  return defer(() => {
    isClosing = true;
    const ended$ = new AsyncSubject<void>();
    http.close(() => {
      ended$.next();
      ended$.complete();
    });
    return concat(
      drain() ?? EMPTY,
      defer(() => {
        drained$.next();
        return EMPTY;
      }),
      // Responses of aborted calls may still be in flight.
      race(ended$, timer(lastWordsMs)).pipe(ignoreElements()),
    );
  });
};

/** Closes the server at the first of the signals. Unsubscribing stops that. */
const onSignals = (signals: readonly NodeJS.Signals[], close$: Observable<never>): Subscription => {
  const closing = new Subscription();
  const close = (): void => {
    closing.add(close$.subscribe({ error: noop }));
  };
  signals.forEach((signal) => process.once(signal, close));
  closing.add(() => {
    signals.forEach((signal) => process.off(signal, close));
  });
  return closing;
};

const lastWordsMs = 1_000;

const isUpgradeProtocol = (protocol: ChatProtocol): protocol is UpgradeProtocol =>
  'attach$' in protocol;

const thisMachine = ['127.0.0.1', '::1', 'localhost'];

const portOf = (http: Server): number => {
  const address = http.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
};

const cannotListen = (cause: Error, host: string, port: number): MillraceError => {
  const isTaken = 'code' in cause && cause.code === 'EADDRINUSE';
  return new MillraceError(
    'config',
    isTaken
      ? `Another program is already listening at ${host}:${port}. Set another 'port', or 0 for a free one.`
      : `The server cannot listen at ${host}:${port}: ${cause.message}.`,
    { cause },
  );
};

const rules: Readonly<Record<'port' | 'host' | 'signals' | 'closeMs', Rule>> = {
  port: [
    (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
    'a port from 0 to 65535',
  ],
  host: isText,
  signals: [Array.isArray, 'a list of signals'],
  closeMs: isDelay,
};
