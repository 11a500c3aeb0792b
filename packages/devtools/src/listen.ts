import { Buffer } from 'node:buffer';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { fromReadableStream, isMillraceError, MillraceError, toReadableStream } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { toNodeListener } from '@millrace/server/node';
import { pageRoutes } from '@millrace/server/page';
import {
  catchError,
  defaultIfEmpty,
  defer,
  EMPTY,
  endWith,
  firstValueFrom,
  map,
  mergeMap,
  Observable,
  of,
  scan,
  takeLast,
  tap,
} from 'rxjs';
import { assets, html } from '#assets';
import { refused } from './holds.js';
import type { Breakpoint, FeedLine, ForkRequest, HoldAction } from './page/protocol.js';
import type { Source } from './source.js';

/** Options of a page of devtools. */
export interface PageOptions {
  /** Default: 4983, or a free one if it is taken. */
  readonly port?: number | undefined;
  /** Default: a random one. */
  readonly token?: string | undefined;
}

const usualPort = 4_983;

/** Requests of the page are small, but for events that a person has edited. */
const maxBytes = 8_000_000;

/**
 * Serves the page and its requests on 127.0.0.1, and emits its address, with the token. Unsubscribing closes it, and
 * every connection. Errors with `config` if it cannot listen. Cold.
 */
export const listen$ = (
  source: Source,
  { port, token = randomBytes(16).toString('hex') }: PageOptions,
  keepsRunning: boolean,
): Observable<string> =>
  new Observable((subscriber) => {
    const respond$ = createRoutes(source, token);
    const http = createServer(
      toNodeListener({ respond: (request) => firstValueFrom(respond$(request)) }),
    );
    if (!keepsRunning) {
      http.unref();
      // Its feed is open for as long as the page is.
      http.on('connection', (socket) => socket.unref());
    }
    subscriber.add(() => {
      http.close();
      http.closeAllConnections();
    });
    http.on('error', (cause: NodeJS.ErrnoException) => {
      if (port === undefined && cause.code === 'EADDRINUSE') http.listen(0, '127.0.0.1');
      else subscriber.error(cannotListen(cause, port));
    });
    http.once('listening', () => {
      subscriber.next(`http://127.0.0.1:${String(portOf(http))}/#token=${token}`);
    });
    http.listen(port ?? usualPort, '127.0.0.1');
  });

const portOf = (http: Server): number => {
  const address = http.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
};

const cannotListen = (cause: NodeJS.ErrnoException, port = usualPort): MillraceError =>
  new MillraceError(
    'config',
    cause.code === 'EADDRINUSE'
      ? `Another program is already listening at 127.0.0.1:${String(port)}. Set another 'port', or 0 for a free one.`
      : `The devtools cannot listen at 127.0.0.1:${String(port)}: ${cause.message}.`,
    { cause },
  );

/** Answers the requests of the page. Never errors. */
export const createRoutes = (
  source: Source,
  token: string,
): ((request: Request) => Observable<Response>) => {
  const page = pageRoutes({ html, assets, path: '/' });
  const isToken = matcher(token);
  return (request) =>
    defer(() => {
      const url = new URL(request.url);
      assertOwn(request, url);
      if (!url.pathname.startsWith('/api/')) {
        const route = page.find(({ path }) => path === url.pathname);
        const isRead = request.method === 'GET' || request.method === 'HEAD';
        if (route === undefined || !isRead) throw refused(404, 'Not found.');
        return route.answer$({ request });
      }
      const [, given = ''] =
        /^Bearer (.+)$/u.exec(request.headers.get('authorization') ?? '') ?? [];
      if (!isToken(given))
        throw refused(401, 'Open the address that the program printed: it has the token.');
      return api$(source, request, url);
    }).pipe(catchError((error: unknown) => of(failed(error))));
};

/** Compares in constant time. */
const matcher = (token: string): ((given: string) => boolean) => {
  const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();
  const own = hashOf(token);
  return (given) => timingSafeEqual(hashOf(given), own);
};

const ownNames = ['127.0.0.1', 'localhost', '[::1]'];

/** Refuses other sites: a page of theirs, or a name of theirs that points to this machine. A link to the page is not refused. */
const assertOwn = (request: Request, url: URL): void => {
  const { headers } = request;
  const { hostname, origin } = url;
  if (!ownNames.includes(hostname)) throw refused(421, `The host '${hostname}' is not served.`);
  const from = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  const isForeign =
    site !== null && site !== 'same-origin' && site !== 'none' && !isLink(request, url);
  if ((from !== null && from !== origin) || isForeign)
    throw refused(403, 'Requests from other sites are refused.');
};

/** Whether a person follows a link. The page is empty without the token, and no script of another site can read it. */
const isLink = ({ method, headers }: Request, { pathname }: URL): boolean =>
  method === 'GET' &&
  pathname === '/' &&
  headers.get('sec-fetch-mode') === 'navigate' &&
  headers.get('sec-fetch-dest') === 'document';

const api$ = (source: Source, request: Request, url: URL): Observable<Response> => {
  const { hub } = source;
  const [what = '', id = '', verb = ''] = url.pathname
    .slice('/api/'.length)
    .split('/')
    .map(decoded);
  switch (`${request.method} ${what}${id === '' ? '' : '/'}${verb}`) {
    case 'GET feed':
      return of(feedOf(source));
    case 'GET calls/':
      return source.open$(id).pipe(endWith(empty()));
    case 'GET search':
      return source
        .search$(url.searchParams.get('q') ?? '', timeIn(url.searchParams.get('until')))
        .pipe(map((found) => Response.json(found)));
    case 'GET exchanges/':
      return of(Response.json(hub.exchanges.of(id)));
    case 'POST older':
      return source.older$.pipe(map((isMore) => Response.json({ isMore })));
    case 'PUT breakpoints':
      return body$(request).pipe(
        map((given) => {
          hub.holds.set(breakpointsIn(given, source.holdable));
          return empty();
        }),
      );
    case 'POST holds/':
      return body$(request).pipe(
        map((given) => {
          hub.holds.act(id, actionIn(given));
          return empty();
        }),
      );
    case 'POST calls/fork':
      return body$(request).pipe(
        mergeMap((given) => source.fork$(id, forkIn(given))),
        map((newId) => Response.json({ id: newId })),
      );
    case 'POST calls/interrupt':
      return body$(request).pipe(
        map((given) => {
          const message = isRecord(given) ? given['message'] : undefined;
          source.interrupt(id, typeof message === 'string' ? message : undefined);
          return empty();
        }),
      );
    default:
      throw refused(404, 'Not found.');
  }
};

/** A path comes from outside. */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    throw refused(400, 'The path cannot be read.');
  }
};

const empty = (): Response => new Response(null, { status: 204 });

const timeIn = (text: string | null): number | undefined => {
  if (text === null) return undefined;
  const time = Number(text);
  if (text === '' || !Number.isFinite(time) || time < 0)
    throw refused(400, "'until' must be a time in milliseconds since the epoch.");
  return time;
};

const feedOf = ({ hub, kind, title, holdable, pageSize }: Source): Response => {
  const { breakpoints } = hub.holds;
  const hello: FeedLine = {
    ...{ line: 'hello', title, source: kind, holdable, breakpoints },
    ...(pageSize !== undefined && { pageSize }),
  };
  const encoder = new TextEncoder();
  const body = toReadableStream(
    (demand) =>
      hub
        .page$(hello, demand)
        .pipe(
          map((lines) => encoder.encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))),
        ),
    { highWaterMark: 1 },
  );
  return new Response(body, {
    headers: {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store, no-transform',
      'x-content-type-options': 'nosniff',
      // The adapter would wait for a second batch before it sends the first.
      'transfer-encoding': 'chunked',
    },
  });
};

/** The JSON of a request. Reads no more than it may have. */
const body$ = (request: Request): Observable<unknown> =>
  (request.body === null ? EMPTY : fromReadableStream(request.body)).pipe(
    scan(
      ({ size, parts }, bytes) => ({ size: size + bytes.length, parts: [...parts, bytes] }),
      noBytes,
    ),
    tap(({ size }) => {
      if (size > maxBytes) throw refused(413, 'The request is too large.');
    }),
    takeLast(1),
    defaultIfEmpty(noBytes),
    map(({ parts }) => {
      const text = Buffer.concat(parts).toString();
      const json = text === '' ? {} : parsedJson(text);
      if (json === undefined) throw refused(400, 'The request is not JSON.');
      return json;
    }),
  );

const noBytes: { readonly size: number; readonly parts: readonly Uint8Array[] } = {
  size: 0,
  parts: [],
};

const breakpointsIn = (given: unknown, holdable: readonly string[]): readonly Breakpoint[] => {
  const isBreakpoint = (it: unknown): it is Breakpoint =>
    isRecord(it) &&
    holdable.some((type) => type === it['type']) &&
    ['string', 'undefined'].includes(typeof it['text']);
  if (Array.isArray(given) && given.every(isBreakpoint)) return given;
  throw refused(400, `Unknown breakpoint. Its type is one of: ${holdable.join(', ') || 'none'}.`);
};

const actionIn = (given: unknown): HoldAction => {
  const { action, event } = isRecord(given) ? given : {};
  if (event !== undefined && !isRecord(event)) throw refused(400, 'The event must be an object.');
  if (action === 'veto') return { action };
  if (action === 'continue' || action === 'step')
    return event === undefined ? { action } : { action, event };
  throw refused(400, "The action must be 'continue', 'step' or 'veto'.");
};

const forkIn = (given: unknown): ForkRequest => {
  const { at, edits = {} } = isRecord(given) ? given : {};
  if (typeof at !== 'string' || at === '')
    throw refused(400, "A fork needs 'at', the id of a step.");
  const areTexts = (value: unknown): value is Readonly<Record<string, string>> =>
    isRecord(value) && Object.values(value).every((text) => typeof text === 'string');
  if (!areTexts(edits)) throw refused(400, "'edits' must map step ids to strings.");
  return { at, edits };
};

const failed = (error: unknown): Response => {
  const known = isMillraceError(error) ? error : undefined;
  const statuses: Partial<Record<MillraceError['code'], number>> = {
    invalidRequest: 400,
    invalidResume: 404,
    config: 400,
    conflict: 409,
  };
  const status = known?.status ?? (known && statuses[known.code]) ?? 500;
  const text = known?.message ?? 'The devtools failed.';
  return Response.json({ error: text }, { status });
};
