import { type AgentEvent, type Demand, isMillraceError } from 'millrace';
import { parsedJson } from 'millrace/values';
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
import type { ApprovalQueue } from '../approvals/approval-queue.js';
import { badRequest, isJson, readBody } from '../inbound.js';
import { mountOf } from '../mount.js';
import { eventStreamHeaders } from '../openai/settings.js';
import {
  type BodyOptions,
  lastEvent,
  toBody,
  toServerSentEvents,
} from '../to-server-sent-events.js';
import type { AskedAlone } from './alone.js';
import type { Conversations } from './conversations.js';
import { type CallMetadata, type ForRequest, requestMetadata$ } from './for-request.js';
import { notFound, refused, sessionsOf, tooLarge } from './guard.js';
import type { Past } from './past.js';
import type {
  AskedOfChat,
  CallAlone,
  Chat,
  ChatProtocol,
  Route,
  StreamFormat,
  Visit,
} from './protocol.js';
import { createPlace, discardedIn, lastSeen, withoutTakenBack } from './rejoining.js';

type Leave = (how: 'ended' | 'cancelled') => void;

/** A request that is being answered. */
export interface Answering {
  readonly request: Request;
  /** `undefined` until it is read. */
  body: unknown;
  user: string | undefined;
  route: Route | undefined;
  streams: Streams | undefined;
}

/** The stream of a response. */
interface Streams {
  readonly callId?: string;
  /** Called when its reader has left or has read to the end. */
  readonly leave: Leave;
  /** It reports its end itself: a stream around it would be one more for each reader. */
  readonly body: ReadableStream;
  readonly end: {
    /** Called once it has ended. */
    ended: (() => void) | undefined;
  };
}

/** The server that answers it. */
export interface VisitedServer extends Pick<ForRequest, 'metadata'> {
  readonly conversations: Conversations;
  readonly approvals: ApprovalQueue | undefined;
  readonly maxBytes: number;
  readonly heartbeatMs: number;
  /** Throws for a request, or a body, that one of the protocols refuses. */
  readonly assert: NonNullable<ChatProtocol['assert']>;
}

export const createVisit = (
  server: VisitedServer,
  answering: Answering,
  ids: Visit['ids'],
): Visit => {
  const { conversations } = server;
  const { request, user } = answering;
  const own = sessionsOf(user);
  return {
    request,
    user,
    left$: left$(request),
    ids,
    mount: mountOf(request),
    body$: body$(request, server.maxBytes).pipe(
      tap((body) => {
        server.assert(request, body);
        answering.body = body;
      }),
    ),
    chat: (id) => createChat(server, answering, id),
    alone$: (asked) =>
      metadataOf$(server, answering, asked).pipe(
        map((metadata) => aloneOf(server, answering, asked, metadata)),
      ),
    chats$: ({ before, ...query }) =>
      conversations.list$(own, {
        ...query,
        ...(before && { before: { ...before, id: `${own}${before.id}` } }),
      }),
    events$: (event$) => {
      if (request.method === 'HEAD') return of(new Response(null, { headers: eventStreamHeaders }));
      const text$ = () => event$.pipe(takeUntil(left$(request)), toServerSentEvents());
      return of(streamed(server, answering, eventStreamHeaders, text$));
    },
    chatOf$: (callId) =>
      conversations.sessionOf$(callId).pipe(
        map((sessionId) => {
          if (!sessionId?.startsWith(own)) throw notFound();
          return createChat(server, answering, sessionId.slice(own.length));
        }),
      ),
  };
};

const createChat = (server: VisitedServer, answering: Answering, id: string): Chat => {
  const { conversations, approvals } = server;
  const sessionId = `${sessionsOf(answering.user)}${id}`;
  return {
    id,
    follow$: (callId, demand) => followed$(conversations, sessionId, callId, demand),
    start$: (asked) =>
      metadataOf$(server, answering, asked).pipe(
        concatMap((metadata) => conversations.start$(sessionId, { ...asked, metadata })),
      ),
    decide$: (verdicts) =>
      approvals === undefined
        ? throwError(() => notFound())
        : approvals.chat.decided$(conversations, sessionId, verdicts),
    stream$: (callId, format, past) =>
      of(callStream(server, answering, { sessionId, callId, format, past })),
    past$: (callId) => conversations.past$(callId),
    history$: (at) => conversations.shown$(sessionId, at),
    moveHead$: (at) => conversations.moveHead$(sessionId, at),
    rename$: (title) => conversations.rename$(sessionId, title),
    remove$: conversations.remove$(sessionId),
    changes$: conversations.changes$(sessionId),
    runs$: conversations.runs$(sessionId),
    events$: (callId, options) => conversations.events$(sessionId, callId, options),
    stop$: (callId) => conversations.stop$(sessionId, callId),
    steer$: (input) => conversations.steer$(sessionId, input),
  };
};

/** Follows a call as its reader. */
const followed$ = (
  conversations: Conversations,
  sessionId: string,
  callId: string,
  demand?: Demand,
): Observable<AgentEvent> =>
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

/** A call of a conversation, and how it is streamed. */
interface StreamedCall {
  readonly sessionId: string;
  readonly callId: string;
  readonly format: StreamFormat;
  readonly past: Past | undefined;
}

/** A response that streams a call, from its first event or after the last one that the client has. */
const callStream = (
  server: VisitedServer,
  answering: Answering,
  { sessionId, callId, format: { headers, encode$, last, isRest }, past }: StreamedCall,
): Response => {
  const { conversations } = server;
  const { request } = answering;
  // Its call has begun. A client may send the whole conversation each time.
  answering.body = undefined;
  // Do not join for `HEAD`: its client leaves immediately, which could end the call.
  if (request.method === 'HEAD') return new Response(null, { headers });
  const takenBack = past?.takenBack ?? [];
  const seen = isRest === true ? undefined : lastSeen(request, callId);
  const place = createPlace(seen);
  // A returning client continues the stream that it started to read.
  const omitted = seen?.omitted ?? discardedIn(takenBack).length;
  // Join now: the call must not end before the body is read.
  const leave = conversations.join(sessionId, callId);
  const idOf = (): string | undefined => {
    const id = place.id();
    return id === undefined ? undefined : `${callId}:${omitted}:${id}`;
  };
  const text$ = (demand: Demand): Observable<string> =>
    conversations
      .follow$(sessionId, callId, demand)
      .pipe(
        withoutTakenBack(takenBack, omitted),
        tap(place.begin),
        encode$,
        filter(place.next),
        toServerSentEvents(isRest === true ? {} : { idOf }),
      );
  return streamed(server, answering, headers, text$, { callId, leave, last });
};

const aloneOf = (
  server: VisitedServer,
  answering: Answering,
  asked: AskedAlone,
  metadata: CallMetadata,
): CallAlone => {
  const { event$, free } = server.conversations.alone({ ...asked, metadata });
  return {
    follow$: event$().pipe(takeUntil(left$(answering.request)), finalize(free)),
    stream$: ({ headers, encode$, last }) => {
      answering.body = undefined;
      const text$ = (demand: Demand) => event$(demand).pipe(encode$, toServerSentEvents());
      return of(streamed(server, answering, headers, text$, { leave: free, last }));
    },
  };
};

type StreamOfCall = Pick<Streams, 'callId' | 'leave'> & {
  /** The data of an additional last event. */
  readonly last?: string | undefined;
};

const streamed = (
  { heartbeatMs }: VisitedServer,
  answering: Answering,
  headers: StreamFormat['headers'],
  text$: (demand: Demand) => Observable<string>,
  { callId, leave, last }: StreamOfCall = { leave: noop },
): Response => {
  // Its end is all that a stream holds: its request, with headers and a signal, may be freed.
  const end: Streams['end'] = { ended: undefined };
  const onEnd: BodyOptions['onEnd'] = (how) => {
    leave(how === 'cancelled' ? how : 'ended');
    end.ended?.();
  };
  const lastText = last === undefined ? undefined : lastEvent(last);
  const body = toBody(text$, { heartbeatMs, onEnd, last: lastText });
  answering.streams = { leave, body, end, ...(callId !== undefined && { callId }) };
  return new Response(body, { headers });
};

const metadataOf$ = (
  { metadata: ofRequest }: VisitedServer,
  { request, body, user }: Answering,
  { metadata }: Pick<AskedOfChat, 'metadata'>,
): Observable<CallMetadata> =>
  requestMetadata$(ofRequest, { request, body, ...(user !== undefined && { user }) }).pipe(
    map((own) => ({ ...own, ...metadata, ...(user !== undefined && { userId: user }) })),
  );

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
      if (text === undefined) throw refused(413, tooLarge(maxBytes));
      return parsedJson(text);
    }),
  );

const left$ = ({ signal }: Request): Observable<unknown> =>
  defer(() => (signal.aborted ? of(true) : fromEvent(signal, 'abort').pipe(take(1))));
