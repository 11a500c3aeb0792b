import { createHash, randomUUID } from 'node:crypto';
import { checkOptions, isRecord } from 'millrace/values';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  type McpHttpHandler,
  type McpServerFactory,
  originValidationResponse,
  ProtocolErrorCode,
  readRequestBody,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import {
  asyncScheduler,
  BehaviorSubject,
  defer,
  firstValueFrom,
  from,
  isObservable,
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  Subscription,
  switchMap,
  take,
  timer,
} from 'rxjs';
import { errorOf, maskOf } from './call-tool.js';
import { createQuota, type GiveBack } from './quota.js';
import { textIn } from './requests.js';
import { boundedUnread, tracked, watched } from './responses.js';
import { type Change, createShared, type Served as ServedTo, type Shared } from './serving.js';
import {
  type Access,
  accessRules,
  type HttpAccess,
  type HttpCaller,
  type Served,
  type Serving,
  type ServingOptions,
  servingOf,
  servingRules,
} from './serve-options.js';

/** Serves MCP in an HTTP server of your own. */
export interface McpHandler {
  /** Answers a request to any path. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends all sessions and cancels all calls. Later requests get the status 503. */
  readonly close: () => void;
}

/**
 * Creates a handler for Streamable HTTP from `Request` to `Response`, for Hono, Bun, Deno and other servers. Clients of versions up to 2025
 * get sessions; the version of 2026-07-28 has none. Checks the headers `Host` and `Origin`, and the bearer token.
 */
export const mcpHandler = (
  served: Served,
  options: ServingOptions & HttpAccess = {},
): McpHandler => {
  checkOptions('mcpHandler()', options, { ...servingRules, ...accessRules });
  const serving = servingOf('mcpHandler()', served, options);
  return createHandler(serving, createShared(serving));
};

/** As `mcpHandler`, with checked options. */
export const createHandler = (
  serving: Serving,
  shared: Shared,
  scheduler: SchedulerLike = asyncScheduler,
): McpHandler => {
  const { message: maxRequestBodySize } = serving.limits;
  const lifetime = new Subscription();
  const sessions = createSessions(serving, shared, scheduler);
  const modern = createMcpHandler(modernServer(shared), {
    legacy: 'reject',
    maxRequestBodySize,
    maxSubscriptions: serving.limits.sessions,
    onerror: (error) => report(serving, error),
  });
  const follow = createFollowing(serving, shared, lifetime, (change) => {
    announce(modern.notify, change);
    sessions.notify(change);
  });

  const answer = async (request: Request): Promise<Response> => {
    const refusal = refusalOf(serving, request);
    if (refusal !== undefined) return refusal;
    if (!methods.includes(request.method)) {
      return problem(405, 'Method not allowed.', { allow: methods.join(', ') });
    }
    const caller = await callerOf(serving, request);
    if (caller === undefined) return unauthorized();
    const isLegacy = await isLegacyRequest(request, undefined, { maxRequestBodySize });
    // It may have been closed since the request arrived; what follows has the whole body, and does not wait.
    if (lifetime.closed) return closedProblem();
    follow();
    if (isLegacy) return sessions.answer(request, caller);
    const served = () => modern.fetch(request, { authInfo: authOf(caller) });
    if (!isListen(request)) return served();
    return (await tooManyUris(serving, request)) ?? sessions.listen(caller, served);
  };
  return {
    fetch: (request) => {
      if (lifetime.closed) return Promise.resolve(closedProblem());
      return tracked(request, answer).catch((error: unknown) => {
        report(serving, error);
        return problem(500, 'Internal server error.');
      });
    },
    close: () => {
      lifetime.unsubscribe();
      sessions.close();
      modern.close().catch((error: unknown) => report(serving, error));
    },
  };
};

/** Returns the function that keeps the lists open, so that each request sees the current one. After an error, the next request tries again. */
const createFollowing = (
  serving: Serving,
  { changes$ }: Pick<Shared, 'changes$'>,
  lifetime: Subscription,
  changed: (change: Change) => void,
): (() => void) => {
  let isFollowed = false;
  return () => {
    if (lifetime.closed || isFollowed) return;
    isFollowed = true;
    lifetime.add(
      changes$.subscribe({
        next: changed,
        error: (error: unknown) => {
          isFollowed = false;
          report(serving, error);
        },
      }),
    );
  };
};

/** Relies on the header: the SDK refuses a request whose header does not match its method. */
const isListen = ({ headers }: Request): boolean =>
  headers.get('mcp-method') === 'subscriptions/listen';

/** Refuses a stream that listens for too many resources: the SDK has no limit. */
const tooManyUris = async (
  { limits }: Serving,
  request: Request,
): Promise<Response | undefined> => {
  const body = await readRequestBody(request.clone(), limits.message);
  const message = body.tooLarge ? undefined : jsonIn(body.text);
  const { id, params } = isRecord(message) ? message : {};
  const wanted = isRecord(params) ? params['notifications'] : undefined;
  const uris: unknown = isRecord(wanted) ? wanted['resourceSubscriptions'] : undefined;
  if (!Array.isArray(uris) || uris.length <= limits.subscriptions) return undefined;
  const text = `You may listen for ${limits.subscriptions} resources.`;
  const error = { code: ProtocolErrorCode.InvalidParams, message: text };
  return Response.json({ jsonrpc: '2.0', id: id ?? null, error }, { status: 400 });
};

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The SDK answers it.
    return undefined;
  }
};

/** Creates the server of a request, whose tools are known before the SDK checks the headers of a call. */
const modernServer =
  (shared: Shared): McpServerFactory =>
  async ({ era, requestInfo, authInfo }) => {
    const isCall = requestInfo?.headers.get('mcp-method') === 'tools/call';
    if (!isCall) return shared.create({ era }).mcp;
    const client = textIn(authInfo && { authInfo }, 'client');
    return shared.create({ era, checked: await shared.tools(client, requestInfo.signal) }).mcp;
  };

const announce = (to: McpHttpHandler['notify'], change: Change): void => {
  if ('updated' in change) to.resourceUpdated(change.updated);
  else if (change.list === 'tools') to.toolsChanged();
  else if (change.list === 'resources') to.resourcesChanged();
  else to.promptsChanged();
};

const methods: readonly string[] = ['GET', 'POST', 'DELETE'];

const report = (serving: Serving, cause: unknown): void =>
  void maskOf(serving, errorOf(cause, 'invalidRequest'));

const problem = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json(
    { jsonrpc: '2.0', id: null, error: { code: status === 404 ? -32_001 : -32_000, message } },
    { status, headers },
  );

const closedProblem = (): Response => problem(503, 'The server is closed.');

// ---------------------------------------------------------------- access

/** Guards against DNS rebinding: a web page must not reach a server of this machine under its own host name. */
const refusalOf = (
  { allowedHosts, allowedOrigins }: Serving,
  request: Request,
): Response | undefined => {
  const host = request.headers.get('host') ?? new URL(request.url).host;
  return (
    hostHeaderValidationResponse(new Request(request.url, { headers: { host } }), [
      ...allowedHosts,
    ]) ?? originValidationResponse(request, [...allowedOrigins])
  );
};

/** Undefined if the request is refused. */
const callerOf = async (
  { authorize }: Serving,
  request: Request,
): Promise<HttpCaller | undefined> => {
  if (authorize === undefined) return {};
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? [];
  const access: unknown = await firstValueFrom(
    defer((): Observable<Access> => {
      const authorization = authorize(token, request);
      return typeof authorization === 'boolean' || isUser(authorization)
        ? of(authorization)
        : from(authorization);
    }),
    { defaultValue: false },
  );
  // Anything but true and a user with a name is a refusal: programs without types return other values by mistake.
  if (access === true) return { client: token === undefined ? 'anyone' : `token ${hashOf(token)}` };
  const user = isRecord(access) ? access['user'] : undefined;
  return typeof user === 'string' && user !== '' ? { user, client: `user ${user}` } : undefined;
};

/** Hashes a token, so tokens are not kept in memory. */
const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64');

const isUser = (access: object): access is { readonly user: string } =>
  'user' in access && !isObservable(access);

const unauthorized = (): Response =>
  problem(401, 'The bearer token is missing or not valid.', { 'www-authenticate': 'Bearer' });

/** The caller, in the form that the SDK passes on to the handlers of a request. */
const authOf = (caller: HttpCaller) => ({
  token: '',
  clientId: caller.user ?? '',
  scopes: [],
  extra: { ...caller },
});

// ---------------------------------------------------------------- sessions

interface Session {
  readonly served: ServedTo;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly user: string | undefined;
  /** The number of its requests whose response has not ended. */
  readonly open$: BehaviorSubject<number>;
}

const tooManySessions = (
  { sessionsPerClient }: Serving['limits'],
  which: 'all' | 'client',
): Response =>
  which === 'all'
    ? problem(503, 'Too many sessions are open. Try again later.', { 'retry-after': '60' })
    : problem(429, `You have ${sessionsPerClient} sessions already. End one of them first.`, {
        'retry-after': '60',
      });

/** The sessions of clients of versions up to 2025. */
const createSessions = (serving: Serving, shared: Shared, scheduler: SchedulerLike) => {
  const { limits } = serving;
  const sessions = new Map<string, Session>();
  /** Requests for a new session count as well, until it turns out whether they are valid. */
  const quota = createQuota(limits.sessions, limits.sessionsPerClient);
  const end = ({ served: { mcp } }: Session): void => {
    mcp.close().catch((error: unknown) => report(serving, error));
  };
  const start = createStart(serving, shared, sessions, (session) =>
    whenIdle$(session, serving, scheduler).subscribe({
      next: () => end(session),
      error: (error: unknown) => report(serving, error),
    }),
  );
  const held = (
    caller: HttpCaller,
    answer: (giveBack: GiveBack) => Promise<Response>,
  ): Promise<Response> => {
    const giveBack = quota.take(caller.client);
    if (typeof giveBack === 'string') return Promise.resolve(tooManySessions(limits, giveBack));
    return answer(giveBack).catch((error: unknown) => {
      giveBack();
      throw error;
    });
  };
  const opened = async (request: Request, caller: HttpCaller): Promise<Response> =>
    held(caller, async (giveBack) => {
      const session = await start(caller.user, giveBack);
      const response = await within(session, request, caller, limits);
      if (session.transport.sessionId === undefined) end(session);
      return response;
    });
  return {
    answer: async (request: Request, caller: HttpCaller): Promise<Response> => {
      const id = request.headers.get('mcp-session-id');
      if (id === null && request.method === 'POST') return opened(request, caller);
      if (id === null) return problem(400, "The header 'Mcp-Session-Id' is missing.");
      const session = sessions.get(id);
      // Treat a session of another user as missing.
      return session === undefined || session.user !== caller.user
        ? problem(404, 'Session not found.')
        : within(session, request, caller, limits);
    },
    /** A stream of version 2026-07-28 that listens for changes is held as a session is. */
    listen: (caller: HttpCaller, answer: () => Promise<Response>): Promise<Response> =>
      held(caller, async (giveBack) =>
        boundedUnread(watched(await answer(), giveBack), limits.unread),
      ),
    notify: (change: Change): void => {
      for (const { served } of sessions.values()) served.notify(change);
    },
    close: (): void => {
      for (const session of sessions.values()) end(session);
    },
  };
};

/** Returns the function that starts a session, which is in the map from its initialization until it ends. */
const createStart =
  (
    { limits }: Serving,
    shared: Shared,
    sessions: Map<string, Session>,
    initialized: (session: Session) => Subscription,
  ) =>
  async (user: string | undefined, giveBack: GiveBack): Promise<Session> => {
    const idle = new Subscription();
    const served = shared.create({ era: 'legacy' }, () => {
      sessions.delete(transport.sessionId ?? '');
      idle.unsubscribe();
      giveBack();
    });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: limits.message,
      onsessioninitialized: (id) => {
        sessions.set(id, session);
        idle.add(initialized(session));
      },
    });
    const session: Session = { served, transport, user, open$: new BehaviorSubject(0) };
    await served.mcp.connect(transport);
    return session;
  };

/** Emits once a session has had no open request for the idle time. */
const whenIdle$ = (
  { open$ }: Session,
  { timeouts }: Serving,
  scheduler: SchedulerLike,
): Observable<unknown> =>
  open$.pipe(
    switchMap((open) => (open > 0 ? NEVER : timer(timeouts.idleMs, scheduler))),
    take(1),
  );

/** Answers a request of a session. */
const within = async (
  { open$, transport }: Session,
  request: Request,
  caller: HttpCaller,
  limits: Serving['limits'],
): Promise<Response> => {
  open$.next(open$.value + 1);
  const response = await transport.handleRequest(request, { authInfo: authOf(caller) });
  const ended = watched(response, () => open$.next(open$.value - 1));
  return request.method === 'GET' ? boundedUnread(ended, limits.unread) : ended;
};
