import { setMaxListeners } from 'node:events';
import { MillraceError, type Tool } from 'millrace';
import {
  type InputRequiredResult,
  isInputRequiredResult,
  type McpRequestContext,
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import {
  catchError,
  defer,
  finalize,
  firstValueFrom,
  fromEvent,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  race,
  Subject,
  take,
  takeUntil,
  takeWhile,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import { errorOf, maskOf } from './call-tool.js';
import { type ListPage, type OpenList, pageOf } from './lists.js';
import {
  type AskedBefore,
  type Asking,
  createAsking,
  type McpRequest,
  missingCapabilityIn,
} from './mcp-client.js';
import type { McpPrompt } from './prompts.js';
import type { Quota } from './quota.js';
import type { McpResource, McpResourceTemplate } from './resources.js';
import type { HttpCaller, Serving } from './serve-options.js';

/** A tool with its name for clients. */
export interface ToolEntry {
  readonly tool: Tool;
  readonly name: string;
}

/** The state that all connections share. */
export interface Room {
  readonly serving: Serving;
  readonly tools: OpenList<ToolEntry>;
  readonly resources: OpenList<McpResource | McpResourceTemplate> | undefined;
  readonly prompts: OpenList<McpPrompt> | undefined;
  readonly quota: Quota;
  readonly codec: RequestStateCodec<AskedBefore>;
}

export interface Connection extends Room {
  readonly mcp: McpServer;
  readonly era: McpRequestContext['era'];
  /** Aborts when the connection closes. Needed because the SDK does not abort the first of two requests with the same id. */
  readonly closed: AbortSignal;
}

/** A request: its labels, its client, and what ends it. */
export interface Incoming {
  readonly metadata: McpRequest['metadata'];
  readonly asking: Asking;
  readonly aborted$: Observable<unknown>;
}

export const incomingOf = (
  { serving, mcp, era, codec, closed }: Connection,
  context: ServerContext,
  call: unknown,
): Incoming => {
  const { mcpReq, http, sessionId } = context;
  const user = textIn(http, 'user');
  return {
    metadata: {
      ...(sessionId !== undefined && { session: sessionId }),
      ...(user !== undefined && { user }),
    },
    asking: createAsking({
      mcp,
      era,
      context,
      codec,
      call: [mcpReq.method, call],
      mostLogs: serving.limits.logs,
    }),
    aborted$: merge(aborted$(mcpReq.signal), aborted$(http?.req?.signal), aborted$(closed)),
  };
};

/** Runs a request within the limits. Ends with a question to the client, or if the client cancels the request or leaves. */
export const limited$ = <R>(
  { serving, quota }: Connection,
  { http }: ServerContext,
  { asking, aborted$: end$ }: Incoming,
  result$: Observable<R>,
): Observable<R | InputRequiredResult> =>
  defer(() => {
    const giveBack = quota.take(textIn(http, 'client'));
    if (typeof giveBack === 'string') throw tooMany(serving, giveBack);
    const over$ = new Subject<void>();
    return merge<(R | InputRequiredResult)[]>(
      asking.needed$.pipe(takeUntil(over$)),
      result$.pipe(finalize(() => over$.next())),
    ).pipe(
      takeWhile((result) => !isInputRequiredResult(result), true),
      takeUntil(end$),
      finalize(giveBack),
    );
  });

const tooMany = ({ limits }: Serving, which: 'all' | 'client'): ProtocolError =>
  new ProtocolError(
    ProtocolErrorCode.InternalError,
    which === 'all'
      ? `${limits.calls} tool calls are running already. Try again later.`
      : `${limits.callsPerClient} tool calls of yours are running. Try again later.`,
  );

/** Answers a request that is not a tool call. Hides errors of the application from the client. */
export const answered = <R>(
  connection: Connection,
  context: ServerContext,
  call: unknown,
  work: (request: McpRequest, current: Incoming['aborted$']) => Observable<R>,
): Promise<R | InputRequiredResult> => {
  const { serving } = connection;
  const incoming = incomingOf(connection, context, call);
  const result$ = defer(() => {
    const ended = new AbortController();
    const client = incoming.asking.client(false);
    const request = { client, metadata: incoming.metadata, signal: ended.signal };
    return work(request, incoming.aborted$).pipe(finalize(() => ended.abort()));
  });
  const first = serving.timeouts.toolMs;
  return lastValueFrom(
    limited$(connection, context, incoming, result$).pipe(
      timeout({ first, with: () => throwError(() => tookTooLong(context.mcpReq.method, first)) }),
      catchError((cause: unknown) => throwError(() => forClients(serving, cause))),
    ),
  );
};

const tookTooLong = (method: string, ms: number): MillraceError =>
  new MillraceError('timeout', `The answer to ${method} took longer than ${ms} ms.`);

/** Converts errors to those for clients: the SDK sends every error message. */
export const forClients = (serving: Serving, cause: unknown): ProtocolError => {
  if (cause instanceof ProtocolError) return cause;
  const text = maskOf(serving, errorOf(cause, 'unknown'));
  return missingCapabilityIn(cause) ?? new ProtocolError(ProtocolErrorCode.InternalError, text);
};

/** A field of the caller over HTTP. */
export const textIn = (http: ServerContext['http'], key: keyof HttpCaller): string | undefined => {
  const value = http?.authInfo?.extra?.[key];
  return typeof value === 'string' ? value : undefined;
};

export const aborted$ = (signal: AbortSignal | undefined): Observable<unknown> => {
  if (signal === undefined) return NEVER;
  // A client may have any number of requests, but Node.js warns about more than ten listeners.
  setMaxListeners(0, signal);
  return signal.aborted ? of(undefined) : fromEvent(signal, 'abort');
};

interface Waiting {
  readonly method: string;
  /** The client whose quota it uses. */
  readonly client: string | undefined;
  readonly aborted$: Observable<unknown>;
}

/** The current list. A request that waits for it counts as a call, and has the same time-out. */
export const current$ = <T>(
  { serving, quota }: Pick<Room, 'serving' | 'quota'>,
  { list$ }: Pick<OpenList<T>, 'list$'>,
  { method, client, aborted$: end$ }: Waiting,
): Observable<readonly T[]> => {
  const { toolMs } = serving.timeouts;
  const tooLong$ = defer(() => {
    const giveBack = quota.take(client);
    if (typeof giveBack === 'string') throw tooMany(serving, giveBack);
    return timer(toolMs).pipe(
      map((): never => {
        throw tookTooLong(method, toolMs);
      }),
      finalize(giveBack),
    );
  });
  // An available list emits immediately, so nothing else is subscribed.
  return race(list$.pipe(take(1)), tooLong$).pipe(
    takeUntil(end$),
    catchError((cause: unknown) => throwError(() => forClients(serving, cause))),
  );
};

/** The current list, or an empty one if the client leaves first. */
export const listOf = <T>(
  connection: Connection,
  list: OpenList<T>,
  { mcpReq: { method, signal }, http }: ServerContext,
): Promise<readonly T[]> =>
  firstValueFrom(
    current$(connection, list, {
      method,
      client: textIn(http, 'client'),
      aborted$: merge(aborted$(signal), aborted$(http?.req?.signal), aborted$(connection.closed)),
    }),
    { defaultValue: [] },
  );

/** A page of a list. */
export const listed = async <T, Shown>(
  connection: Connection,
  list: OpenList<T>,
  context: ServerContext,
  cursor: string | undefined,
  show: (item: T) => Shown,
): Promise<ListPage<Shown>> => {
  const { page, next } = pageOf(await listOf(connection, list, context), cursor);
  try {
    return { page: page.map(show), next };
  } catch (cause) {
    throw forClients(connection.serving, cause);
  }
};
