import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { MillraceError } from 'millrace';
import { checkOptions, type Complete, isRecord, isText, type Rule } from 'millrace/values';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import {
  catchError,
  connect,
  defer,
  endWith,
  from,
  fromEvent,
  ignoreElements,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  Observable,
  type ObservableInput,
  switchMap,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { errorOf, maskOf } from './call-tool.js';
import { createHandler } from './mcp-handler.js';
import { type Change, createShared, type Shared } from './serving.js';
import {
  accessRules,
  type HttpAccess,
  type Served,
  type Serving,
  type ServingOptions,
  servingOf,
  servingRules,
  within,
} from './serve-options.js';

/** The address of a server over HTTP. */
export interface HttpOptions extends HttpAccess {
  /** 0 takes a free port. */
  readonly port: number;
  /** The address to listen on. Default: `127.0.0.1`. Another one needs `allowedHosts`. */
  readonly host?: string | undefined;
  /** The path of the URL. Default: `/mcp`. */
  readonly path?: string | undefined;
}

/** How clients reach a server: as the process that started this one, or over HTTP. */
export type ServeMcpOptions = ServingOptions &
  (
    | {
        /** Standard input and output of this process, or other streams. Write nothing else to the output. */
        readonly stdio: true | { readonly input: Readable; readonly output: Writable };
        readonly http?: undefined;
      }
    | { readonly http: HttpOptions; readonly stdio?: undefined }
  );

/** A server that is ready for clients. */
export type Listening =
  { readonly transport: 'stdio' } | { readonly transport: 'http'; readonly url: string };

/**
 * Serves an agent (one tool: a question in, the answer out) or tools to MCP clients, over standard input and output or
 * Streamable HTTP. Cold: subscribing starts, and emits once when clients can connect. Unsubscribing cancels all calls
 * and closes all connections immediately. Completes when the input of stdio ends, and never over HTTP. Errors with a
 * `MillraceError`: `config` if it cannot listen, or the error of the Observable of tools. Wrong options throw.
 */
export const serveMcp = (served: Served, options: ServeMcpOptions): Observable<Listening> => {
  const { stdio, http, ...general } = options;
  checkOptions('serveMcp()', options, rules);
  if ((stdio === undefined) === (http === undefined)) {
    throw misuse("serveMcp() needs either 'stdio' or 'http': how clients reach it.");
  }
  const {
    port = 0,
    host = '127.0.0.1',
    path = '/mcp',
    ...access
  }: Partial<HttpOptions> = http ?? {};
  if (!/^(127\.|localhost$|::1$)/.test(host) && access.allowedHosts === undefined) {
    throw misuse(
      `serveMcp() on '${host}' needs 'allowedHosts': the names under which clients reach it.`,
    );
  }
  const serving = servingOf('serveMcp()', served, { ...general, ...access });
  return stdio === undefined
    ? overHttp$(serving, { port, host, path })
    : overStdio$(
        serving,
        stdio === true ? { input: process.stdin, output: process.stdout } : stdio,
      );
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);

const overStdio$ = (
  serving: Serving,
  { input, output }: { readonly input: Readable; readonly output: Writable },
): Observable<Listening> =>
  defer(() => {
    const shared = createShared(serving);
    const servers = new Set<ReturnType<Shared['create']>>();
    const report = (cause: unknown): void => void maskOf(serving, errorOf(cause, 'connection'));
    const connected$ = new Observable<Listening>((subscriber) => {
      const { message: maxBufferSize } = serving.limits;
      const transport = new StdioServerTransport(input, output, { maxBufferSize });
      const connection = serveStdio(
        ({ era }) => {
          const served = shared.create({ era }, () => servers.delete(served));
          servers.add(served);
          return served.mcp;
        },
        { transport, onerror: report, maxSubscriptions: serving.limits.sessions },
      );
      const { onclose } = transport;
      transport.onclose = () => {
        onclose?.();
        subscriber.complete();
      };
      subscriber.next({ transport: 'stdio' });
      return () => {
        connection.close().catch(report);
      };
    });
    const changed$ = shared.changes$.pipe(
      onceRead(output),
      tap((change) => [...servers].forEach((served) => served.notify(change))),
    );
    return whileOpen(connected$, changed$);
  });

/** Queues each change only once while the client does not read, since the output of a process has no limit. */
const onceRead =
  (output: Writable): MonoTypeOperatorFunction<Change> =>
  (changes$) =>
    defer(() => {
      const waiting = new Map<string, Change>();
      return changes$.pipe(
        mergeMap((change): ObservableInput<Change> => {
          if (!output.writableNeedDrain) return [change];
          const isFirst = waiting.size === 0;
          waiting.set(JSON.stringify(change), change);
          if (!isFirst) return [];
          return fromEvent(output, 'drain').pipe(
            take(1),
            mergeMap(() => {
              const all = [...waiting.values()];
              waiting.clear();
              return all;
            }),
          );
        }),
      );
    });

const overHttp$ = (
  serving: Serving,
  { port, host, path }: Complete<Pick<HttpOptions, 'port' | 'host' | 'path'>>,
): Observable<Listening> =>
  defer(() => {
    const shared = createShared(serving);
    // Not needed for stdio.
    const listening$ = from(import('@modelcontextprotocol/node')).pipe(
      switchMap(({ hostHeaderValidation, originValidation, toNodeHandler }) => {
        // Before the body is read.
        const isHostAllowed = hostHeaderValidation([...serving.allowedHosts]);
        const isOriginAllowed = originValidation([...serving.allowedOrigins]);
        const handler = createHandler(serving, shared);
        const answer = toNodeHandler(handler, { maxRequestBodySize: serving.limits.message });
        return new Observable<Listening>((subscriber) => {
          const server = createServer((request, response) => {
            if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
            if (request.url?.split('?')[0] !== path) {
              response.writeHead(404).end();
              return;
            }
            answer(withMethod(request), response).catch((cause: unknown) => {
              maskOf(serving, errorOf(cause, 'connection'));
              response.destroy();
            });
          });
          server.on('error', (cause) => subscriber.error(cannotListen(host, port, cause)));
          server.listen(port, host, () => {
            subscriber.next({ transport: 'http', url: urlOf(server, host, path) });
          });
          return () => {
            handler.close();
            server.close();
            server.closeAllConnections();
          };
        });
      }),
    );
    return whileOpen(listening$, shared.changes$);
  });

/** Keeps the lists of tools open for as long as the server is, and errors if they do. */
const whileOpen = (
  listening$: Observable<Listening>,
  lists$: Observable<unknown>,
): Observable<Listening> =>
  listening$.pipe(
    connect((shared$) =>
      merge(
        shared$,
        lists$.pipe(
          ignoreElements(),
          takeUntil(shared$.pipe(ignoreElements(), endWith(true))),
          catchError((cause: unknown) => throwError(() => errorOf(cause, 'unknown'))),
        ),
      ),
    ),
  );

/** A request to a server always has both fields; their types are those of responses as well. */
const withMethod = (request: IncomingMessage): IncomingMessage & Record<'method' | 'url', string> =>
  Object.assign(request, { method: request.method ?? 'GET', url: request.url ?? '/' });

const cannotListen = (host: string, port: number, cause: Error): MillraceError =>
  new MillraceError('config', `serveMcp() cannot listen on ${host}:${port}: ${cause.message}`, {
    cause,
  });

const urlOf = (server: Server, host: string, path: string): string => {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
};

const rules: Readonly<Record<keyof ServingOptions | 'stdio' | 'http', Rule>> = {
  ...servingRules,
  stdio: [
    (value) => value === true || (isRecord(value) && 'input' in value && 'output' in value),
    'true, or the streams { input, output }',
  ],
  http: within("'http'", {
    ...accessRules,
    port: [
      (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 65_536,
      'a port from 0 to 65535',
    ],
    host: isText,
    path: [(value) => typeof value === 'string' && value.startsWith('/'), 'a path, such as /mcp'],
  }),
};
