// Answers requests of node:http with a server that takes a `Request`, also within frameworks.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { PassThrough, Readable } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import { MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import type { ChatServer } from '../chat/chat-server.js';
import { movedRequest } from '../mount.js';

/** A server that takes a `Request`, such as a `chatServer()`. Without `handles`, every request is for it. */
export type RequestServer = Pick<ChatServer, 'respond'> & Partial<Pick<ChatServer, 'handles'>>;

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

/** A request of node:http, of a framework that adds to it, such as Express, or of one that wraps it, such as Fastify. */
export type HandledRequest =
  | Incoming
  | {
      readonly raw: Incoming;
      readonly body?: unknown;
      readonly server?: { readonly prefix: string };
    };

/** The response to a `HandledRequest`. */
export type HandledResponse =
  | Outgoing
  | {
      readonly raw: Outgoing;
      readonly hijack: () => unknown;
      readonly callNotFound: () => unknown;
      readonly getHeaders: () => Readonly<Record<string, number | string | string[] | undefined>>;
    };

/** Answers a request, or calls `next` if the server has no route for it. */
export type NodeListener = (
  request: HandledRequest,
  response: HandledResponse,
  next?: (error?: unknown) => void,
) => void;

/**
 * Creates a listener for `createServer` of `node:http`, for Express, NestJS and others with `app.use(listener)`, and for Fastify with
 * `app.all('/*', listener)`. What the server has no route for goes to the next handler of the framework; without one, it is
 * answered with 404. The framework may have read the body, and may have removed the beginning of the path.
 */
export const toNodeListener =
  (server: RequestServer): NodeListener =>
  (given, reply, next) => {
    const request = handledOf(given);
    const target = targetOf(request, server);
    if (target === undefined) {
      const pass = next ?? ('callNotFound' in reply ? () => void reply.callNotFound() : undefined);
      if (pass !== undefined) {
        pass();
        return;
      }
    }
    const answer = getRequestListener(
      async (asked, { outgoing }) => {
        const isOthers = othersListening(request.incoming);
        const response = await server.respond(requestFor(asked, request, target));
        return heldOpen(readyFor(response, outgoing), request.incoming, isOthers);
      },
      { overrideGlobalObjects: false, ...(next && { errorHandler: failing(next) }) },
    );
    void answer(request.incoming, outgoingOf(reply));
  };

/** Passes errors of the server on to the framework's error handlers. A malformed request is answered here. */
const failing = (next: (error: unknown) => void) => (error: unknown) => {
  if (error instanceof RequestError) return new Response(null, { status: 400 });
  next(error);
  return undefined;
};

// ---------------------------------------------------------------- the request

/** A request, and what was done to it before. */
interface Handled {
  readonly incoming: Incoming;
  /** The body as a parser has left it; `undefined` without a parser. */
  readonly body: unknown;
  /** Its bytes, if the parser has kept them. */
  readonly rawBody: unknown;
  /** The path with its query, as it is now and as the client has sent it. */
  readonly url: string;
  readonly originalUrl: string;
}

const handledOf = (given: HandledRequest): Handled => {
  if (isWrapped(given)) {
    const { raw: incoming } = given;
    const { url = '' } = incoming;
    const { body, server: { prefix = '' } = {} } = given;
    const isBelow = prefix !== '' && /^(?:[/?]|$)/u.test(url.slice(prefix.length));
    const inner = isBelow && url.startsWith(prefix) ? url.slice(prefix.length) : url;
    return { incoming, body, rawBody: undefined, url: rooted(inner), originalUrl: url };
  }
  const { url = '' } = given;
  const [body, rawBody, originalUrl] = ['body', 'rawBody', 'originalUrl'].map((name): unknown =>
    Reflect.get(given, name),
  );
  return {
    incoming: given,
    body,
    rawBody,
    url,
    originalUrl: typeof originalUrl === 'string' ? originalUrl : url,
  };
};

/** A program may keep something else as `raw`, such as the bytes of a body. */
const isWrapped = (given: HandledRequest): given is Exclude<HandledRequest, Incoming> =>
  'raw' in given && isRecord(given.raw) && 'rawHeaders' in given.raw;

const rooted = (url: string): string => (url.startsWith('/') ? url : `/${url}`);

/** The URL of a request that the server has a route for, and the path that was removed from it. */
interface HandledTarget {
  readonly url: string;
  readonly mount: string;
}

/** A server may be mounted below the paths of its routes, or at them: `app.use('/api', listener)`. */
const targetOf = (
  { incoming: { method = 'GET' }, url, originalUrl }: Handled,
  { handles }: RequestServer,
): HandledTarget | undefined => {
  const isHandled = (path: string): boolean => {
    const absolute = absoluteOf('http://localhost', path);
    return handles === undefined || (URL.canParse(absolute) && handles({ method, url: absolute }));
  };
  if (isHandled(url)) return { url, mount: removedFrom(originalUrl, url) };
  return isHandled(originalUrl) ? { url: originalUrl, mount: '' } : undefined;
};

/** Concatenates instead of `new URL(path, origin)`, which would treat a path that starts with `//` as a host. */
const absoluteOf = (origin: string, path: string): string =>
  /^https?:\/\//u.test(path) ? path : `${origin}${path}`;

const removedFrom = (originalUrl: string, url: string): string => {
  const [whole = '', path = ''] = [originalUrl, url].map((it) => it.replace(/\?.*$/u, ''));
  if (whole.endsWith(path)) return whole.slice(0, whole.length - path.length);
  return path === '/' ? whole : '';
};

/** The request for the server: the one of the adapter, unless something was done to it. */
const requestFor = (
  asked: Request,
  handled: Handled,
  target: HandledTarget = { url: handled.url, mount: '' },
): Request => {
  const { incoming } = handled;
  const isMoved = target.url !== (incoming.url ?? '') || target.mount !== '';
  const url = isMoved ? absoluteOf(new URL(asked.url).origin, target.url) : asked.url;
  const given = withWholeBody(asked, handled);
  return isMoved ? movedRequest(given, url, target.mount) : given;
};

/** The request with its whole body, also if others read it. `new Request()` does not take the request of the adapter. */
const withWholeBody = (asked: Request, handled: Handled): Request => {
  const { method, signal, url } = asked;
  const { incoming } = handled;
  const headers = headersOf(asked, incoming);
  if (isForbidden.test(method)) return asked;
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal });
  if (incoming.readableDidRead) return withReadBody(asked, handled);
  const body = isFollowed(incoming) ? copyOf(incoming) : asked.body;
  return new Request(url, { method, headers, signal, body, duplex: 'half' });
};

/** The headers of a request. An absolute target overrides the `Host` header (RFC 9112, 3.2.2). */
const headersOf = ({ headers, url }: Request, { url: target = '' }: Incoming): Headers => {
  if (!/^https?:\/\//iu.test(target)) return headers;
  const own = new Headers(headers);
  own.set('host', new URL(url).host);
  return own;
};

/** Methods that a `Request` cannot have. */
const isForbidden = /^(?:connect|trace|track)$/iu;

/** Whether others, such as a log, get the body as well, or get it as a string. */
const isFollowed = (incoming: Incoming): boolean =>
  incoming.readableEncoding !== null ||
  ['data', 'readable'].some((name) => incoming.listenerCount(name) > 0);

/** Copies a body from now on. Otherwise the server would miss what others read before it. */
const copyOf = (incoming: Incoming): ReadableStream => {
  const copy = new PassThrough({ defaultEncoding: incoming.readableEncoding ?? 'utf8' });
  incoming.once('close', () => {
    if (!incoming.readableEnded) copy.destroy(new Error('The request is incomplete.'));
  });
  return Readable.toWeb(incoming.pipe(copy));
};

/** The request with the body that was read before. */
const withReadBody = (asked: Request, handled: Handled): Request => {
  const { url, method, signal } = asked;
  const headers = new Headers(headersOf(asked, handled.incoming));
  // The parser has decoded the body.
  if (headers.has('content-encoding')) {
    headers.delete('content-encoding');
    headers.delete('content-length');
  }
  const body = readBodyOf(handled, headers);
  return new Request(url, { method, headers, body, signal, duplex: 'half' });
};

/** A body that was read before, as the last middleware has left it. */
const readBodyOf = (
  { body, rawBody }: Handled,
  headers: Headers,
): Uint8Array<ArrayBuffer> | string | ReadableStream => {
  if (body instanceof Uint8Array) return new Uint8Array(body);
  if (typeof body === 'string') return body;
  const isJson = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/iu.test(
    headers.get('content-type') ?? '',
  );
  const json = isJson && body !== undefined ? JSON.stringify(body) : undefined;
  if (rawBody instanceof Uint8Array && (json === undefined || json === compactJson(rawBody)))
    return new Uint8Array(rawBody);
  return json ?? lostBody();
};

/** The JSON of bytes, without blanks, for a comparison. */
const compactJson = (bytes: Uint8Array): string | undefined =>
  JSON.stringify(parsedJson(new TextDecoder().decode(bytes)));

const lostBody = (): ReadableStream =>
  new ReadableStream({
    start: (controller) => {
      const text =
        "The body of the request was read before it reached this server, and is not in 'request.body'. Mount the server before what reads bodies.";
      controller.error(new MillraceError('config', text, { userMessage: text }));
    },
  });

// ---------------------------------------------------------------- the response

/** Takes over the response from a framework that wraps it, with the headers that were set there. */
const outgoingOf = (reply: HandledResponse): Outgoing => {
  if (!('hijack' in reply)) return reply;
  const { raw } = reply;
  reply.hijack();
  Object.entries(reply.getHeaders()).forEach(([name, value]) => {
    if (value !== undefined) raw.setHeader(name, value);
  });
  return raw;
};

const isEventStream = (headers: Headers): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true;

/**
 * The response as it is sent. It is a copy: the headers of some responses, such as those of `fetch`, cannot be changed, and a response may be
 * kept to be sent again.
 */
const readyFor = (response: Response, outgoing: Outgoing): Response => {
  const { body, status, type, url } = response;
  if (type === 'error') throw new TypeError('A response of `Response.error()` cannot be sent.');
  const headers = new Headers(response.headers);
  joinedHeaders.forEach((name) => {
    keepHeader(name, headers, outgoing);
  });
  // `fetch` has decoded its body.
  if (url !== '' && body !== null && headers.has('content-encoding')) {
    headers.delete('content-encoding');
    headers.delete('content-length');
  }
  // Makes the adapter treat the body as a stream; otherwise it would wait for a second event before it sends the first.
  if (isEventStream(headers) && outgoing.req.httpVersion === '1.1')
    headers.set('transfer-encoding', 'chunked');
  return new Response(body, { status, headers });
};

/** Headers with lists, to which both middlewares and the server may contribute. */
const joinedHeaders = ['vary', 'access-control-expose-headers', 'set-cookie'];

/** Keeps the values that middlewares have set in a header, which the server's header would replace. */
const keepHeader = (name: string, headers: Headers, outgoing: Outgoing): void => {
  const before = outgoing.getHeader(name);
  if (before === undefined || !headers.has(name)) return;
  const own = name === 'set-cookie' ? headers.getSetCookie() : [headers.get(name) ?? ''];
  headers.delete(name);
  [before, ...own].flat().forEach((value) => {
    headers.append(name, String(value));
  });
};

/**
 * Reads the rest of a request that was answered early, and then ends the response: a client or proxy that is still sending
 * would not read it from a closed connection.
 */
const heldOpen = async (
  response: Response,
  incoming: Incoming,
  isOthers: (listener: unknown) => boolean,
): Promise<Response> => {
  const { status, headers, body } = response;
  const isWhole = incoming.complete || incoming.destroyed || incoming.httpVersionMajor > 1;
  if (isWhole || body === null || isEventStream(headers)) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  // With a content length, the response would end with its last byte.
  headers.delete('content-length');
  let isOpen = true;
  const held = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (bytes.byteLength > 0) controller.enqueue(bytes);
      drain(incoming, isOthers, () => {
        if (isOpen) controller.close();
      });
    },
    cancel: () => {
      isOpen = false;
    },
  });
  return new Response(held, { status, headers });
};

/** Discards the rest of a request, which others may still listen to, for a limited time. */
const drain = (
  incoming: Incoming,
  isOthers: (listener: unknown) => boolean,
  done: () => void,
): void => {
  const listeners = Array.from<unknown>(incoming.listeners('data')).filter(isListener);
  // Remove the server's listeners, which would pause the request.
  listeners.filter((it) => !isOthers(it)).forEach((it) => incoming.off('data', it));
  const over = (): void => {
    clearTimeout(timeout);
    ends.forEach((name) => incoming.off(name, over));
    done();
  };
  const ends = ['end', 'close'];
  ends.forEach((name) => incoming.once(name, over));
  const timeout = setTimeout(over, maxDrainMs);
  incoming.resume();
};

const isListener = (value: unknown): value is (piece: unknown) => void =>
  typeof value === 'function';

/** The same limit as in nginx. */
const maxDrainMs = 30_000;

const othersListening = (incoming: Incoming): ((listener: unknown) => boolean) => {
  const listeners = new Set<unknown>(incoming.listeners('data'));
  return (listener) => listeners.has(listener);
};
