import { PROTOCOL_VERSION } from '@ag-ui/core';
import {
  type AgentEvent,
  type Message,
  type MillraceError,
  toReadableStream,
} from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import {
  catchError,
  concat,
  concatMap,
  defer,
  from,
  map,
  type Observable,
  of,
  type OperatorFunction,
  skip,
  throwError,
} from 'rxjs';
import { afterOfAgUi, type AgUiInput, inputOfAgUi } from '../ag-ui/input-of-ag-ui.js';
import { toAgUi } from '../ag-ui/to-ag-ui.js';
import { inputOfUiMessages, placeOfUiMessages } from '../ai-sdk/input-of-ui-messages.js';
import { toUiMessageStream } from '../ai-sdk/to-ui-message-stream.js';
import type { ApprovalQueue } from '../approvals/approval-queue.js';
import { approvalsHandler } from '../approvals/approvals-handler.js';
import { badRequest, fieldOf, idOf, isJson, notBlank, readBody } from '../inbound.js';
import type { MaskOptions } from '../masks.js';
import { agUiHeaders, uiMessageStreamHeaders } from '../responses.js';
import { toServerSentEvents } from '../to-server-sent-events.js';
import {
  assertHost,
  type Authenticator,
  crossOrigin,
  failure,
  notFound,
  refused,
  userOf$,
  wrongMethod,
} from './guard.js';
import type { Asked, Conversations } from './conversations.js';
import { type Client, clientOf, toAgUiMessages, toUiMessages } from './history.js';
import { discardedIn, lastSeen, whenOver, withHeartbeats, withoutTakenBack } from './rejoining.js';

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

interface RoutesOptions {
  readonly path: string;
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly user: Authenticator | undefined;
  readonly hosts: readonly string[] | undefined;
  readonly origins: readonly string[];
  readonly aiSdk: 6 | 7;
  readonly approvals: ApprovalQueue | undefined;
  readonly maxBytes: number;
  readonly heartbeatMs: number;
  readonly masks: MaskOptions;
  readonly report: (error: MillraceError) => void;
  readonly log: (entry: AccessEntry) => void;
}

/** A request of an authenticated user. */
interface Visit {
  readonly request: Request;
  readonly user: string | undefined;
  readonly sessionOf: (chatId: string) => string;
  /** Called when the response has ended. */
  readonly ended: (status: number, callId?: string) => void;
}

type Answer = (visit: Visit, chatId: string) => Observable<Response>;

export const createRoutes = (
  conversations: Conversations,
  options: RoutesOptions,
): ((request: Request) => Observable<Response>) => {
  const { approvals, aiSdk, masks } = options;
  const decide = approvals && approvalsHandler(approvals);
  const body$ = (request: Request): Observable<unknown> =>
    defer(() => {
      if (!isJson(request)) throw refused(415, 'The content type must be application/json.');
      return from(readBody(request, options.maxBytes)).pipe(
        catchError(() => throwError(() => badRequest('its body is not UTF-8, or incomplete'))),
      );
    }).pipe(
      map((text) => {
        if (text === undefined) throw refused(413, 'The request is too large.');
        return parsedJson(text);
      }),
    );

  const streamed = (
    { ended, request }: Visit,
    { callId, sessionId }: CallOfSession,
    protocol: Protocol,
    takenBack: readonly AgentEvent[] = [],
  ): Response => {
    const encoder = new TextEncoder();
    const seen = lastSeen(request, callId);
    // A client that comes back continues what it has begun to read.
    const omitted = seen?.omitted ?? discardedIn(takenBack).length;
    const leave = conversations.join(sessionId, callId);
    const bytes = toReadableStream((demand) =>
      conversations.follow$(sessionId, callId, demand).pipe(
        withoutTakenBack(takenBack, omitted),
        protocol.encode$,
        toServerSentEvents({
          ...protocol.end,
          idOf: (index) => `${callId}:${omitted}:${index}`,
        }),
        skip(seen === undefined ? 0 : seen.index + 1),
        withHeartbeats(options.heartbeatMs, demand),
        map((text) => encoder.encode(text)),
      ),
    );
    return new Response(
      whenOver(bytes, () => {
        leave();
        ended(200, callId);
      }),
      { headers: protocol.headers },
    );
  };
  /** Joins a call: without what was taken back before, and with the results that its client has brought. */
  const joined$ = (
    visit: Visit,
    call: CallOfSession,
    protocolFor: (client: Client) => Protocol,
  ): Observable<Response> =>
    conversations
      .past$(call.callId)
      .pipe(
        concatMap(({ takenBack, results }) =>
          (results.length === 0
            ? of({})
            : conversations
                .messages$(call.sessionId)
                .pipe(map((messages) => clientOf(toUiMessages(messages), results)))
          ).pipe(map((client) => streamed(visit, call, protocolFor(client), takenBack))),
        ),
      );
  const started$ = (
    visit: Visit,
    chatId: string,
    asked: Omit<Asked, 'metadata'>,
    protocol: Protocol,
  ): Observable<Response> => {
    const sessionId = visit.sessionOf(chatId);
    const metadata = visit.user === undefined ? {} : { userId: visit.user };
    return conversations
      .start$(sessionId, { ...asked, metadata })
      .pipe(map((callId) => streamed(visit, { sessionId, callId }, protocol)));
  };

  const shared = { ...masks, ...(approvals && { approvals }) };
  const uiMessages = (client: Client): Protocol => ({
    headers: uiMessageStreamHeaders,
    encode$: toUiMessageStream({ target: aiSdk, ...shared, ...client }),
    end: { last: '[DONE]' },
  });
  const agUi = (run: Pick<AgUiInput, 'threadId' | 'runId' | 'clientResults'>): Protocol => ({
    headers: agUiHeaders,
    encode$: toAgUi({ ...shared, ...run }),
    end: {},
  });

  const routes: readonly (readonly [method: string, path: RegExp, answer: Answer])[] = [
    [
      'POST',
      /^\/chat$/u,
      (visit) =>
        body$(visit.request).pipe(
          concatMap((body) => {
            const { input, chatId, ...client } = inputOfUiMessages(body);
            const asked = { input, ...placeOfUiMessages(body) };
            return started$(visit, chatId, asked, uiMessages(client));
          }),
        ),
    ],
    [
      'GET',
      /^\/chat\/([^/]+)$/u,
      (visit, chatId) =>
        history$(conversations, visit.sessionOf(chatId)).pipe(
          map(({ messages, running }) =>
            Response.json({ id: chatId, messages: toUiMessages(messages), running }),
          ),
        ),
    ],
    [
      'GET',
      /^\/chat\/([^/]+)\/stream$/u,
      (visit, chatId) =>
        defer(() => {
          const sessionId = visit.sessionOf(chatId);
          const seen = lastSeen(visit.request)?.callId;
          const callId$ =
            seen === undefined
              ? conversations.runs$(sessionId).pipe(map(([run]) => run?.callId))
              : of(seen);
          return callId$.pipe(
            concatMap((callId) =>
              callId === undefined
                ? of(new Response(null, { status: 204 }))
                : joined$(visit, { sessionId, callId }, uiMessages),
            ),
          );
        }),
    ],
    [
      'POST',
      /^\/chat\/([^/]+)\/stop$/u,
      (visit, chatId) =>
        conversations
          .stop$(visit.sessionOf(chatId))
          .pipe(map((stopped) => Response.json({ stopped }))),
    ],
    [
      'POST',
      /^\/chat\/([^/]+)\/steer$/u,
      (visit, chatId) =>
        body$(visit.request).pipe(
          concatMap((body) =>
            conversations.steer$(visit.sessionOf(chatId), notBlank(fieldOf(body, 'text'))),
          ),
          map((delivered) => Response.json({ delivered })),
        ),
    ],
    [
      'POST',
      /^\/ag-ui$/u,
      (visit) =>
        body$(visit.request).pipe(
          concatMap((body) => {
            const { input, ...run } = inputOfAgUi(body);
            const asked = { input, after: afterOfAgUi(body) };
            return started$(visit, run.threadId, asked, agUi(run));
          }),
        ),
    ],
    [
      'POST',
      /^\/ag-ui\/connect$/u,
      (visit) =>
        body$(visit.request).pipe(
          concatMap((body) => {
            const threadId = idOf(fieldOf(body, 'threadId'), 'threadId');
            const runId = idOf(fieldOf(body, 'runId'), 'runId');
            return connected$(visit, threadId, runId);
          }),
        ),
    ],
    [
      'POST',
      /^\/approvals$/u,
      ({ request }) =>
        decide === undefined ? throwError(() => notFound()) : from(decide(request)),
    ],
  ];

  /** The messages of a conversation, then the rest of its running call. */
  const connected$ = (visit: Visit, threadId: string, runId: string): Observable<Response> => {
    const sessionId = visit.sessionOf(threadId);
    return history$(conversations, sessionId).pipe(
      concatMap(({ messages, running }) => {
        const begin = [
          { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION },
          { type: 'MESSAGES_SNAPSHOT', messages: toAgUiMessages(messages) },
        ];
        const end = { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } };
        if (running !== undefined) {
          return joined$(visit, { sessionId, callId: running }, ({ clientResults }) => {
            const rest = agUi({ threadId, runId, ...(clientResults && { clientResults }) });
            const encode$ = (event$: Observable<AgentEvent>): Observable<object> =>
              concat(begin, event$.pipe(rest.encode$, skip(1)));
            return { ...rest, encode$ };
          });
        }
        const text = [...begin, end].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
        visit.ended(200);
        return of(new Response(text, { headers: agUiHeaders }));
      }),
    );
  };

  return (request) =>
    defer(() => {
      const began = performance.now();
      const { pathname } = new URL(request.url);
      const crossing = crossOrigin(request, options.origins);
      let user: string | undefined;
      const ended = (status: number, callId?: string): void => {
        const ms = performance.now() - began;
        const who = { ...(user === undefined ? {} : { user }), ...(callId && { callId }) };
        options.log({ method: request.method, path: pathname, status, ms, ...who });
      };
      return defer(() => {
        assertHost(request, options.hosts);
        if (crossing === undefined) throw refused(403, 'This origin may not use the server.');
        if (request.method === 'OPTIONS') return of(new Response(null, { status: 204 }));
        if (!pathname.startsWith(`${options.path}/`)) throw notFound();
        const path = pathname.slice(options.path.length);
        const found = routes.filter(([, pattern]) => pattern.test(path));
        const route = found.find(([method]) => method === request.method);
        if (route === undefined) throw found.length === 0 ? notFound() : wrongMethod(found);
        const [, pattern, answer] = route;
        const [, part] = pattern.exec(path) ?? [];
        const chatId = part === undefined ? '' : idOf(decoded(part), 'id');
        return userOf$(request, options.user).pipe(
          concatMap((id) => {
            user = id;
            const sessionOf = (chat: string): string =>
              id === undefined ? chat : `${encodeURIComponent(id)}/${chat}`;
            return answer({ request, user, sessionOf, ended }, chatId);
          }),
        );
      }).pipe(
        catchError((cause: unknown) => of(failure(cause, options.report))),
        map((response) => {
          Object.entries(crossing ?? {}).forEach(([name, value]) => {
            response.headers.set(name, value);
          });
          const isStream = response.headers.get('content-type') === 'text/event-stream';
          if (!isStream || response.body === null) ended(response.status);
          return response;
        }),
      );
    });
};

interface CallOfSession {
  readonly sessionId: string;
  readonly callId: string;
}

interface Protocol {
  readonly headers: Readonly<Record<string, string>>;
  readonly encode$: OperatorFunction<AgentEvent, object>;
  readonly end: { readonly last?: string };
}

interface History {
  readonly messages: readonly Message[];
  /** The call that runs. */
  readonly running: string | undefined;
}

/** A conversation, with the questions of the calls that have not ended. */
const history$ = (conversations: Conversations, sessionId: string): Observable<History> =>
  conversations.messages$(sessionId).pipe(
    concatMap((messages) =>
      conversations.runs$(sessionId).pipe(
        map((runs) => ({
          messages: [
            ...messages.filter(({ id }) => !runs.some(({ callId }) => id.startsWith(`${callId}/`))),
            ...runs.flatMap(({ question }) => question),
          ],
          running: runs[0]?.callId,
        })),
      ),
    ),
  );

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badRequest("'id' is not encoded as UTF-8");
  }
};
