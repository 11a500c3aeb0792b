import { type Demand, isMillraceError, type MillraceError } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import {
  catchError,
  concatMap,
  defer,
  filter,
  finalize,
  from,
  fromEvent,
  map,
  noop,
  type Observable,
  of,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { badRequest, isJson, readBody } from '../inbound.js';
import { eventStreamHeaders } from '../openai/settings.js';
import { toBody, toServerSentEvents } from '../to-server-sent-events.js';
import { aiSdkRoutes } from './ai-sdk-routes.js';
import { chatsRoutes } from './chats-routes.js';
import type { Conversations } from './conversations.js';
import { type AddCrossOrigin, assertHost, assertNotEmbedded, crossOrigin } from './cross-origin.js';
import {
  type Authenticator,
  failure,
  notFound,
  refused,
  sessionsOf,
  userOf$,
  wrongMethod,
} from './guard.js';
import { type CallMetadata, type ForRequest, requestMetadata$ } from './for-request.js';
import {
  idsIn,
  type MatchedRoute,
  methodsOf,
  routeFor,
  routesAt,
  type Target,
  withPattern,
} from './matching.js';
import { mountOf } from '../mount.js';
import type { AskedAlone } from './alone.js';
import type {
  AskedOfChat,
  CallAlone,
  Chat,
  ChatProtocol,
  Route,
  ServerOfRoutes,
  StreamFormat,
  Visit,
} from './protocol.js';
import {
  createPlace,
  discardedIn,
  lastSeen,
  whenOver,
  withHeartbeats,
  withoutTakenBack,
} from './rejoining.js';

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

type Leave = (how: 'ended' | 'cancelled') => void;

/** A request that is being answered. */
interface Answering {
  readonly request: Request;
  /** `undefined` until it is read. */
  body: unknown;
  user: string | undefined;
  route: Route | undefined;
  /** The call that the response streams, and what is called when its reader has left or has read to the end. */
  streams: { readonly callId?: string; readonly leave: Leave } | undefined;
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

  const streamed = (
    answering: Answering,
    headers: StreamFormat['headers'],
    text$: (demand: Demand) => Observable<string>,
    streams: Answering['streams'],
  ): Response => {
    answering.streams = streams;
    const body = toBody((demand) =>
      text$(demand).pipe(withHeartbeats(options.heartbeatMs, demand)),
    );
    return new Response(body, { headers });
  };
  const metadataOf$ = (
    { request, body, user }: Answering,
    { metadata }: Pick<AskedOfChat, 'metadata'>,
  ): Observable<CallMetadata> =>
    requestMetadata$(options.metadata, { request, body, ...(user !== undefined && { user }) }).pipe(
      map((own) => ({ ...own, ...metadata, ...(user !== undefined && { userId: user }) })),
    );
  const aloneOf = (answering: Answering, asked: AskedAlone, metadata: CallMetadata): CallAlone => {
    const { request } = answering;
    const { event$, free } = conversations.alone({ ...asked, metadata });
    return {
      follow$: event$().pipe(takeUntil(left$(request)), finalize(free)),
      stream$: ({ headers, encode$, last }) => {
        const toText = toServerSentEvents(last === undefined ? {} : { last });
        const text$ = (demand: Demand) => event$(demand).pipe(encode$, toText);
        return of(streamed(answering, headers, text$, { leave: free }));
      },
    };
  };
  const chatOf = (answering: Answering, id: string): Chat => {
    const { request, user } = answering;
    const sessionId = `${sessionsOf(user)}${id}`;
    const follow$: Chat['follow$'] = (callId, demand) =>
      defer(() => {
        const leave = conversations.join(sessionId, callId);
        return conversations.follow$(sessionId, callId, demand).pipe(
          tap({
            complete: () => {
              leave('ended');
            },
          }),
          finalize(() => {
            leave('cancelled');
          }),
        );
      });
    return {
      id,
      follow$,
      start$: (asked) =>
        metadataOf$(answering, asked).pipe(
          concatMap((metadata) => conversations.start$(sessionId, { ...asked, metadata })),
        ),
      decide$: (verdicts) =>
        approvals === undefined
          ? throwError(() => notFound())
          : approvals.chat.decided$(conversations, sessionId, verdicts),
      stream$: (callId, { headers, encode$, last, isRest }, past) => {
        // Its client would leave immediately, which ends a call whose last client has gone.
        if (request.method === 'HEAD') return of(new Response(null, { headers }));
        const takenBack = past?.takenBack ?? [];
        const seen = isRest === true ? undefined : lastSeen(request, callId);
        const place = createPlace(seen);
        // A client that comes back continues what it has begun to read.
        const omitted = seen?.omitted ?? discardedIn(takenBack).length;
        // From now on: until the body is read, nothing else may end the call.
        const leave = conversations.join(sessionId, callId);
        const idOf = (): string | undefined => {
          const id = place.id();
          return id === undefined ? undefined : `${callId}:${omitted}:${id}`;
        };
        const text$ = (demand: Demand): Observable<string> =>
          conversations.follow$(sessionId, callId, demand).pipe(
            withoutTakenBack(takenBack, omitted),
            tap(place.begin),
            encode$,
            filter(place.next),
            toServerSentEvents({
              ...(last === undefined ? {} : { last }),
              ...(isRest === true ? {} : { idOf }),
            }),
          );
        return of(streamed(answering, headers, text$, { callId, leave }));
      },
      past$: (callId) => conversations.past$(callId),
      history$: (at) => conversations.shown$(sessionId, at),
      moveHead$: (at) => conversations.moveHead$(sessionId, at),
      rename$: (title) => conversations.rename$(sessionId, title),
      remove$: conversations.remove$(sessionId),
      changes$: conversations.changes$(sessionId),
      runs$: conversations.runs$(sessionId),
      events$: (callId) => conversations.events$(sessionId, callId),
      stop$: (callId) => conversations.stop$(sessionId, callId),
      steer$: (input) => conversations.steer$(sessionId, input),
    };
  };
  const visitOf = (answering: Answering, ids: Visit['ids']): Visit => {
    const { request, user } = answering;
    return {
      request,
      user,
      left$: left$(request),
      ids,
      mount: mountOf(request),
      body$: body$(request, options.maxBytes).pipe(
        tap((body) => {
          answering.body = body;
        }),
      ),
      chat: (id) => chatOf(answering, id),
      alone$: (asked) =>
        metadataOf$(answering, asked).pipe(map((metadata) => aloneOf(answering, asked, metadata))),
      chats$: ({ before, ...query }) => {
        const own = sessionsOf(user);
        return conversations.list$(own, {
          ...query,
          ...(before && { before: { ...before, id: `${own}${before.id}` } }),
        });
      },
      events$: (event$) => {
        if (request.method === 'HEAD')
          return of(new Response(null, { headers: eventStreamHeaders }));
        const text$ = () => event$.pipe(takeUntil(left$(request)), toServerSentEvents());
        return of(streamed(answering, eventStreamHeaders, text$, undefined));
      },
      chatOf$: (callId) =>
        conversations.sessionOf$(callId).pipe(
          map((sessionId) => {
            const own = sessionsOf(user);
            if (!sessionId?.startsWith(own)) throw notFound();
            return chatOf(answering, sessionId.slice(own.length));
          }),
        ),
    };
  };
  /** Errors with a refusal, before anything of the request is read. */
  const answered$ = (
    answering: Answering,
    found: readonly MatchedRoute[],
  ): Observable<Response> => {
    const { request } = answering;
    if (found.length === 0) throw notFound();
    const route = routeFor(found, request);
    if (route?.isPublic !== true) assertNotEmbedded(request);
    if (request.method === 'OPTIONS') {
      return of(
        new Response(null, { status: 204, headers: { allow: methodsOf(found).join(', ') } }),
      );
    }
    if (route === undefined) return of(wrongMethod(methodsOf(found)));
    answering.route = route;
    const ids = idsIn(route, request);
    if (route.isPublic === true) return route.answer$(visitOf(answering, ids));
    return userOf$(request, options.user).pipe(
      concatMap((id) => {
        answering.user = id;
        return route.answer$(visitOf(answering, ids));
      }),
    );
  };

  const respond$: Routes['respond$'] = (request) =>
    defer(() => {
      const began = performance.now();
      const found = routesAt(routes, request);
      let crossing: AddCrossOrigin | undefined;
      const answering: Answering = {
        request,
        body: undefined,
        user: undefined,
        route: undefined,
        streams: undefined,
      };
      const ended = (status: number): void => {
        const ms = performance.now() - began;
        const { user, streams } = answering;
        const callId = streams?.callId;
        const who = { ...(user === undefined ? {} : { user }), ...(callId && { callId }) };
        const { pathname } = new URL(request.url);
        options.log({ method: request.method, path: pathname, status, ms, ...who });
      };
      return defer(() => {
        assertHost(request, options.hosts);
        crossing = crossOrigin(request, options.origins, methodsOf(found));
        return answered$(answering, found);
      }).pipe(
        catchError((cause: unknown) => of(failure(cause, options.report, answering.route?.failed))),
        map((given) => {
          const { body, status } = given;
          // The headers of some responses, such as those of `fetch`, cannot be changed.
          const headers = new Headers(given.headers);
          crossing?.(headers);
          if (request.method === 'HEAD') {
            body?.cancel().catch(noop);
            ended(status);
            return new Response(null, { status, headers });
          }
          if (body === null || (answering.streams === undefined && !isEventStream(headers))) {
            ended(status);
            return crossing === undefined ? given : new Response(body, { status, headers });
          }
          const watched = whenOver(body, (how) => {
            answering.streams?.leave(how);
            ended(status);
          });
          return new Response(watched, { status, headers });
        }),
      );
    });
  const handles: Routes['handles'] = (target) => {
    const methods = methodsOf(routesAt(routes, target));
    return methods.includes(target.method) || (target.method === 'OPTIONS' && methods.length > 0);
  };
  return { respond$, handles };
};

const isEventStream = (headers: Headers): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true;

const body$ = (request: Request, maxBytes: number): Observable<unknown> =>
  defer(() => {
    if (!isJson(request)) throw refused(415, 'The content type must be application/json.');
    return from(readBody(request, maxBytes)).pipe(
      catchError((cause: unknown) =>
        throwError(() =>
          isMillraceError(cause) ? cause : badRequest('its body is not UTF-8, or incomplete'),
        ),
      ),
    );
  }).pipe(
    map((text) => {
      if (text === undefined) throw refused(413, 'The request is too large.');
      return parsedJson(text);
    }),
  );

const left$ = ({ signal }: Request): Observable<unknown> =>
  defer(() => (signal.aborted ? of(true) : fromEvent(signal, 'abort').pipe(take(1))));
