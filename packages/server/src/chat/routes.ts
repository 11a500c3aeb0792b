import type { MillraceError } from 'millrace';
import { watchStream } from 'millrace/values';
import { catchError, concatMap, defer, map, noop, type Observable, of } from 'rxjs';
import { aiSdkRoutes } from './ai-sdk-routes.js';
import { chatsRoutes } from './chats-routes.js';
import type { Conversations } from './conversations.js';
import { type AddCrossOrigin, assertHost, assertNotEmbedded, crossOrigin } from './cross-origin.js';
import type { ForRequest } from './for-request.js';
import { type Authenticator, failure, notFound, shownTo, userOf$, wrongMethod } from './guard.js';
import {
  idsIn,
  type MatchedRoute,
  methodsOf,
  routeFor,
  routesAt,
  type Target,
  withPattern,
} from './matching.js';
import type { ChatProtocol, ServerOfRoutes } from './protocol.js';
import { type Answering, createVisit, type VisitedServer } from './visits.js';

/** A response that has ended. */
export interface AccessEntry {
  readonly method: string;
  /** The path of the request, without its query. */
  readonly path: string;
  readonly status: number;
  /** Until the end of the response, in milliseconds. */
  readonly ms: number;
  readonly user?: string;
  readonly callId?: string;
}

interface RoutesOptions extends Pick<ForRequest, 'metadata'> {
  readonly served: ServerOfRoutes;
  readonly path: string;
  readonly protocols: readonly ChatProtocol[];
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly user?: Authenticator | undefined;
  readonly hosts: readonly string[] | undefined;
  readonly origins: readonly string[];
  readonly aiSdk: 6 | 7;
  readonly maxBytes: number;
  readonly heartbeatMs: number;
  readonly report: (error: MillraceError) => void;
  readonly log: (entry: AccessEntry) => void;
}

/** Answers requests. */
interface Routes {
  readonly respond$: (request: Request) => Observable<Response>;
  /** Whether there is a route for the path and the method of a request. */
  readonly handles: (target: Target) => boolean;
}

export const createRoutes = (conversations: Conversations, options: RoutesOptions): Routes => {
  const { path, served } = options;
  const { approvals } = served;
  const protocols: readonly ChatProtocol[] = [
    aiSdkRoutes(path, options.aiSdk),
    chatsRoutes(path),
    () => approvals?.chat.routes(path) ?? [],
    ...options.protocols,
  ];
  const routes = protocols.flatMap((protocol) => protocol(served)).map(withPattern);
  const assert: VisitedServer['assert'] = (request, body) => {
    for (const protocol of protocols) protocol.assert?.(request, body);
  };
  const server: VisitedServer = { ...options, conversations, approvals, assert };
  return {
    respond$: (request) =>
      defer(() => {
        const found = routesAt(routes, request);
        const answering = createAnswering(request);
        let addCrossOrigin: AddCrossOrigin | undefined;
        const began = performance.now();
        return defer(() => {
          assertHost(request, options.hosts);
          addCrossOrigin = crossOrigin(request, options.origins, methodsOf(found));
          return answered$(server, answering, found, options.user);
        }).pipe(
          catchError((cause: unknown) =>
            of(failure(cause, options.report, answering.route?.failed ?? shownTo(request))),
          ),
          map((response) =>
            watched(response, answering, addCrossOrigin, accessLog(answering, began, options.log)),
          ),
        );
      }),
    handles: (target) => {
      const methods = methodsOf(routesAt(routes, target));
      return methods.includes(target.method) || (target.method === 'OPTIONS' && methods.length > 0);
    },
  };
};

const createAnswering = (request: Request): Answering => ({
  request,
  body: undefined,
  user: undefined,
  route: undefined,
  streams: undefined,
});

/** Answers a request. Errors with a refusal before anything of the request is read. */
const answered$ = (
  server: VisitedServer,
  answering: Answering,
  found: readonly MatchedRoute[],
  user: Authenticator | undefined,
): Observable<Response> => {
  const { request } = answering;
  if (found.length === 0) throw notFound();
  const route = routeFor(found, request);
  if (route?.isPublic !== true) assertNotEmbedded(request, route?.isFramed);
  server.assert(request);
  if (request.method === 'OPTIONS') {
    return of(new Response(null, { status: 204, headers: { allow: methodsOf(found).join(', ') } }));
  }
  if (route === undefined) return of(wrongMethod(methodsOf(found)));
  answering.route = route;
  const ids = idsIn(route, request);
  if (route.isPublic === true) return route.answer$(createVisit(server, answering, ids));
  return userOf$(request, user).pipe(
    concatMap((id) => {
      answering.user = id;
      return route.answer$(createVisit(server, answering, ids));
    }),
  );
};

/** Returns the function that logs a response once it has ended. A stream may be open for long, so it does not hold the request. */
const accessLog = (
  { request: { method, url }, user, streams }: Answering,
  began: number,
  log: (entry: AccessEntry) => void,
): ((status: number) => void) => {
  const callId = streams?.callId;
  return (status) => {
    const ms = performance.now() - began;
    const who = { ...(user === undefined ? {} : { user }), ...(callId && { callId }) };
    log({ method, path: new URL(url).pathname, status, ms, ...who });
  };
};

/** The response as its client gets it. Watches the body of a stream, which may end long after. */
const watched = (
  given: Response,
  answering: Answering,
  addCrossOrigin: AddCrossOrigin | undefined,
  ended: (status: number) => void,
): Response => {
  const { body, status } = given;
  // The headers of some responses, such as those of `fetch`, cannot be changed.
  const headers = new Headers(given.headers);
  addCrossOrigin?.(headers);
  if (answering.request.method === 'HEAD') {
    body?.cancel().catch(noop);
    ended(status);
    return new Response(null, { status, headers });
  }
  const end = (): void => {
    ended(status);
  };
  const { streams } = answering;
  if (body !== null && streams?.body === body) {
    streams.end.ended = end;
  } else if (body !== null && (streams !== undefined || isEventStream(headers))) {
    // A stream of another kind, or a refusal after the call was joined.
    const stream = watchStream(body, (how) => {
      streams?.leave(how === 'cancelled' ? how : 'ended');
      end();
    });
    return new Response(stream, { status, headers });
  } else {
    end();
  }
  return addCrossOrigin === undefined ? given : new Response(body, { status, headers });
};

const isEventStream = (headers: Headers): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true;
