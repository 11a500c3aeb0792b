import { MillraceError } from 'millrace';
import {
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { isRecord, parsedJson } from 'millrace/values';
import { noop, timer } from 'rxjs';
import { SessionLost } from './failure.js';
import type { MessageReader } from './message-reader.js';
import { bounded, createResponseReader } from './responses.js';
import type { HttpFetch, HttpServer, Server } from './server-options.js';

/** Ends a connection that the server has made useless. */
export type Fail = (error: MillraceError) => void;

/**
 * A transport whose requests, those of OAuth included, stay on the origin of the server and the origins of the
 * options: a server names the addresses of its metadata, its authorization server and the endpoints of that.
 */
export const overHttp = (
  server: Server,
  http: HttpServer,
  reader: MessageReader,
  fail: Fail,
): Transport => {
  const address = new URL(http.url);
  const allowed = new Set([address.origin, ...(http.origins ?? [])]);
  let refusal: MillraceError | undefined;
  const check = (target: string | URL): URL => {
    const url = new URL(target);
    const isAllowed = allowed.has(url.origin) && url.username + url.password === '';
    // The SDK ignores some refusals, and tries other addresses.
    if (!isAllowed) refusal ??= refusedOrigin(server, url);
    if (refusal === undefined) return url;
    fail(refusal);
    throw refusal;
  };
  const given = new Headers(http.headers);
  const { fetch: send = fetch, authProvider } = http;
  const listening = new Set<string | null>();
  const responses = createResponseReader(reader);
  return new StreamableHTTPClientTransport(address, {
    ...(authProvider && {
      authProvider: isOAuth(authProvider)
        ? boundToIssuer(server, authProvider, check)
        : authProvider,
    }),
    fetch: async (target, init = {}) => {
      const url = check(target);
      const request =
        init.method === 'POST' ? parsedJson(typeof init.body === 'string' ? init.body : '') : {};
      // A cancelled request has ended before the server answers.
      if (isRecord(request) && request['id'] === undefined) reader.sent(request);
      const headers = url.origin === address.origin ? merged(given, init.headers) : init.headers;
      const response = await sent(send, url, { ...init, ...(headers && { headers }) });
      const short = bounded(response, server.limits.message, () => fail(tooLong(server)));
      if (url.href !== address.href) return short;
      const all = new Headers(headers);
      const session = all.get('mcp-session-id');
      const lastEvent = all.get('last-event-id') ?? undefined;
      if (init.method === 'GET') {
        if (responses.isAwaited(lastEvent)) listening.add(session);
        watchStream(server, response, session, listening, fail);
      }
      return responses.read(short, {
        request,
        lastEvent: init.method === 'GET' ? lastEvent : undefined,
        hasStream: listening.has(session),
      });
    },
    ...reconnection(server),
  });
};

type Transport = StreamableHTTPClientTransport;

/** If a server keeps ending its stream, it is reopened with the same back-off as a connection. */
const reconnection = ({
  reconnect: { backoffMs, maxBackoffMs },
}: Server): Pick<TransportOptions, 'reconnectionOptions' | 'reconnectionScheduler'> => ({
  reconnectionOptions: {
    initialReconnectionDelay: backoffMs,
    maxReconnectionDelay: maxBackoffMs,
    reconnectionDelayGrowFactor: 2,
    maxRetries: mostStreams,
  },
  reconnectionScheduler: (reconnect, ms) => {
    const waiting = timer(Math.max(ms, leastRetryMs)).subscribe({ next: reconnect, error: noop });
    return () => waiting.unsubscribe();
  },
});

type TransportOptions = NonNullable<ConstructorParameters<typeof StreamableHTTPClientTransport>[1]>;

/** The maximum number of consecutive attempts to reopen a stream. */
const mostStreams = 10;
/** The minimum wait: a server may ask for none. */
const leastRetryMs = 100;

/** If an open stream is refused when it is reopened, its session is lost. */
const watchStream = (
  { name }: Server,
  { ok, status }: Response,
  session: string | null,
  listening: Set<string | null>,
  fail: Fail,
): void => {
  if (ok) listening.add(session);
  else if ((status === 404 || status === 400) && session !== null && listening.has(session)) {
    fail(new SessionLost(`The MCP server '${name}' has lost the session: HTTP ${status}.`, true));
  }
};

/** Shows only the origin, since the address may be an attempt to reach an internal service. */
const refusedOrigin = ({ name }: Server, { origin, protocol }: URL): MillraceError =>
  new MillraceError(
    'refused',
    `The MCP server '${name}' names an address at ${origin === 'null' ? protocol : origin}, which is not allowed. ` +
      "If you trust that origin, for example as its authorization server, add it to 'http.origins'.",
  );

export const tooLong = ({ name, limits }: Server): MillraceError =>
  new MillraceError(
    'connection',
    `The MCP server '${name}' sent a message of more than ${limits.message} bytes, so the connection was closed.`,
  );

// ---------------------------------------------------------------- credentials

const isOAuth = (
  provider: NonNullable<HttpServer['authProvider']>,
): provider is OAuthClientProvider => 'tokens' in provider && 'clientInformation' in provider;

/**
 * A provider whose credentials go only to the issuer that they were stored with. The SDK discards those of another
 * issuer, and trusts the server with those of none.
 */
const boundToIssuer = (
  server: Server,
  provider: OAuthClientProvider,
  check: (target: string | URL) => URL,
): OAuthClientProvider => {
  const bound: Partial<OAuthClientProvider> = {
    tokens: async (context) => {
      const tokens = await provider.tokens(context);
      // Without a context, they are for the MCP server itself.
      return context === undefined || isStamped(tokens) ? tokens : undefined;
    },
    clientInformation: async (context) => {
      const client = await provider.clientInformation(context);
      if (client !== undefined && !isStamped(client) && isConfidential(provider, client)) {
        throw withoutIssuer(server);
      }
      return client;
    },
    redirectToAuthorization: (url) => provider.redirectToAuthorization(check(url)),
  };
  return new Proxy(provider, {
    get: (target, key): unknown => {
      const value: unknown = Reflect.get(key in bound ? bound : target, key);
      // Methods may use private fields.
      return isFunction(value) ? value.bind(target) : value;
    },
  });
};

const isFunction = (value: unknown): value is (...parameters: never) => unknown =>
  typeof value === 'function';

const isStamped = (stored: { readonly issuer?: unknown } | undefined): boolean =>
  typeof stored?.issuer === 'string' && stored.issuer !== '';

/** Whether the client proves who it is: by a secret, an assertion, or the parameters of a grant. */
const isConfidential = (provider: OAuthClientProvider, client: object): boolean =>
  'client_secret' in client ||
  provider.addClientAuthentication !== undefined ||
  provider.prepareTokenRequest !== undefined;

const withoutIssuer = ({ name }: Server): MillraceError =>
  new MillraceError(
    'config',
    `The client information for the MCP server '${name}' has no 'issuer', so its credentials are not sent. Set it to ` +
      "the URL of the authorization server that issued them ('expectedIssuer' of the providers of the SDK).",
  );

// ---------------------------------------------------------------- requests

/** Sends a request with the `fetch` of the options, which may return only a part of a `Response`. */
const sent = async (send: HttpFetch, url: URL, init: RequestInit): Promise<Response> => {
  const request = new Request(url, init);
  const body = await request.text();
  const {
    status,
    headers,
    body: content,
  } = await send(url.href, {
    method: request.method,
    headers: Object.fromEntries(request.headers),
    ...(body !== '' && { body }),
    ...(init.signal && { signal: init.signal }),
    redirect: 'manual',
  });
  return new Response(isBodiless(status) ? null : content, {
    status,
    headers: Array.from(headers, ([name, value]) => [name, value]),
  });
};

const isBodiless = (status: number): boolean => [204, 205, 304].includes(status);

/** The SDK's headers override those of the options. */
const merged = (own: Headers, given: RequestInit['headers']): Headers => {
  const all = new Headers(own);
  new Headers(given).forEach((value, name) => all.set(name, value));
  return all;
};
