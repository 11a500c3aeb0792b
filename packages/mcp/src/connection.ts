import { MillraceError } from '@millrace/core';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
  BehaviorSubject,
  catchError,
  defer,
  EMPTY,
  firstValueFrom,
  from,
  fromEvent,
  lastValueFrom,
  noop,
  Observable,
  type ObservableInput,
  takeUntil,
  timeout,
} from 'rxjs';
import { failureOf, isConnectionLost } from './failure.js';
import { cleaned } from './text.js';
import { overHttp, tooLong } from './http.js';
import type { Server, StdioServer } from './server-options.js';

/** A connection to a server. */
export interface Connection {
  readonly client: Client;
  /** Counts the announced changes of the list of tools. */
  readonly version$: BehaviorSubject<number>;
  /** Performs a request. Unsubscribing cancels it. A failure that means that the connection is lost ends it. */
  readonly request$: <T>(
    doing: string,
    ask: (options: RequestOptions) => Promise<T>,
  ) => Observable<T>;
}

interface RequestOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
}

/** The longest delay of a timer: the time-outs are those of Millrace. */
const never = 2 ** 31 - 1;
/** Messages that are no JSON-RPC, per connection: more of them end it. */
const mostInvalid = 100;
const goodbyeMs = 1_000;

/** Connects to a server: emits one connection, and errors when it is lost. Unsubscribing ends it, and a child process. */
export const connect$ = (server: Server): Observable<Connection> =>
  new Observable((subscriber) => {
    const { connectMs } = server.timeouts;
    const abort = new AbortController();
    const version$ = new BehaviorSubject(0);
    const client = clientOf(server, () => version$.next(version$.value + 1));
    const end = (error: MillraceError): void => subscriber.error(error);
    const lost = (why: string): void =>
      end(new MillraceError('connection', `The MCP server '${server.name}' ${why}.`));
    const transport =
      server.stdio === undefined
        ? overHttp(server, server.http, end)
        : overStdio(server, server.stdio);
    let invalid = 0;
    transport.onerror = (cause) => {
      if (cause.message.startsWith('ReadBuffer exceeded')) end(tooLong(server));
      invalid += 1;
      if (invalid > mostInvalid) lost('sent too many messages that are not valid');
    };
    const request$: Connection['request$'] = (doing, ask) =>
      requested$(ask).pipe(
        catchError((cause: unknown) => {
          if (isConnectionLost(cause)) lost('closed the connection');
          throw failureOf(server, doing, cause);
        }),
      );
    client.connect(transport, { signal: abort.signal, timeout: connectMs }).then(
      () => {
        client.onclose = () => lost('closed the connection');
        subscriber.next({ client, version$, request$ });
      },
      (cause: unknown) => end(failureOf(server, 'to connect', cause)),
    );
    return () => {
      client.onclose = noop;
      abort.abort();
      void closed(client, transport);
    };
  });

const requested$ = <T>(ask: (options: RequestOptions) => Promise<T>): Observable<T> =>
  new Observable((subscriber) => {
    const abort = new AbortController();
    ask({ signal: abort.signal, timeout: never }).then(
      (value) => {
        subscriber.next(value);
        subscriber.complete();
      },
      (cause: unknown) => subscriber.error(cause),
    );
    return () => abort.abort();
  });

/** An HTTP server may free the session. A child process gets the end of its input, then SIGTERM, then SIGKILL. */
const closed = (client: Client, transport: Transport): Promise<void> => {
  const goodbye$ =
    transport instanceof StreamableHTTPClientTransport
      ? from(transport.terminateSession()).pipe(
          timeout(goodbyeMs),
          catchError(() => EMPTY),
        )
      : EMPTY;
  return (
    lastValueFrom(goodbye$, { defaultValue: undefined })
      .then(() => client.close())
      // A client that still negotiates the version does not own the transport yet.
      .finally(() => transport.close())
      .catch(noop)
  );
};

type Transport = StreamableHTTPClientTransport | StdioClientTransport;

// ---------------------------------------------------------------- client

const clientOf = (server: Server, changed: () => void): Client => {
  const { onElicit, onElicitUrl, onSample, limits, http } = server;
  const client = new Client(
    { name: 'millrace', version: '0.1.0' },
    {
      capabilities: {
        ...((onElicit ?? onElicitUrl) && {
          elicitation: {
            ...(onElicit && { form: { applyDefaults: true } }),
            ...(onElicitUrl && { url: {} }),
          },
        }),
        ...(onSample && { sampling: {} }),
      },
      listMaxPages: limits.pages,
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
      // A probe costs a child process one more start.
      versionNegotiation: { mode: http === undefined ? 'legacy' : 'auto' },
    },
  );
  if (onElicit ?? onElicitUrl) {
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq: { signal } }) => {
      if (params.mode !== 'url') {
        if (onElicit) return answered(signal, () => onElicit(params, signal));
      } else {
        const url = pageOf(params.url);
        if (onElicitUrl && url !== undefined) {
          const message = cleaned(params.message, limits.description);
          const isOpened = await answered(signal, () => onElicitUrl({ message, url }, signal));
          return { action: isOpened ? 'accept' : 'decline' };
        }
      }
      throw new Error('It cannot be shown.');
    });
  }
  if (onSample) {
    client.setRequestHandler('sampling/createMessage', ({ params }, { mcpReq: { signal } }) =>
      answered(signal, () => onSample(params, signal)),
    );
  }
  return client;
};

/** The address of a web page, as a browser spells it; one with a password could disguise its host. Throws if it is not valid. */
const pageOf = (address: string): string | undefined => {
  const { href, protocol, username, password } = new URL(address);
  return /^https?:$/.test(protocol) && username + password === '' ? href : undefined;
};

/** The first answer of a callback, unless the server cancels its question. */
const answered = <T>(signal: AbortSignal, answer: () => ObservableInput<T>): Promise<T> =>
  firstValueFrom(defer(answer).pipe(takeUntil(fromEvent(signal, 'abort'))));

// ---------------------------------------------------------------- transports

const overStdio = (
  { limits }: Server,
  { command, args = [], env, cwd, stderr = 'ignore' }: StdioServer,
): StdioClientTransport =>
  new StdioClientTransport({
    command,
    args: [...args],
    stderr,
    maxBufferSize: limits.message,
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
  });
