import {
  type AgentEvent,
  type InputMessage,
  isMillraceError,
  type Message,
  type MillraceError,
  suspensionsIn,
} from 'millrace';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  forkJoin,
  ignoreElements,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  type OperatorFunction,
  takeUntil,
  takeWhile,
} from 'rxjs';
import type { Past } from '../chat/past.js';
import type { Placing } from '../chat/places.js';
import type { Chat, Route, StreamFormat, Visit } from '../chat/protocol.js';
import { discardedIn } from '../chat/rejoining.js';
import { assertForClient, isForClient } from '../inbound.js';
import { createMasks, type MaskOptions } from '../masks.js';
import { encodedBy, toParts } from '../parts/to-parts.js';
import { metadataOf } from './asked-for.js';
import { type Begun, withErrors } from './decisions.js';
import { assertAnswered, idsIn } from './messages.js';
import { refuse } from './refusals.js';
import {
  createResponseEncoder,
  type ResponseEncoder,
  type ResponseEvent,
} from './response-encoder.js';
import { readRequest, type ResponseRequest } from './response-request.js';
import { noSuchResponse, refOf, type ResponseRef, responseIdOf } from './response-ids.js';
import { eventStreamHeaders, type Served } from './settings.js';

/** The part of a stream that a client lacks. */
interface Reading {
  /** The last event that it has. */
  readonly after: number;
  readonly discarded: readonly string[];
}

const fromBeginning: Reading = { after: -1, discarded: [] };

export const responseRoutes = (
  path: string,
  served: Served,
  masks: MaskOptions,
): readonly Route[] => {
  const encoding = createEncoding(served, masks);
  const responses = `${path}/responses`;
  return [
    {
      method: 'POST',
      path: responses,
      answer$: (visit) =>
        visit.body$.pipe(
          map((body) => readRequest(body, served)),
          concatMap((request) =>
            request.isStored
              ? stored$(visit, served, encoding, request)
              : alone$(visit, encoding, request),
          ),
        ),
    },
    {
      method: 'GET',
      path: `${responses}/:id`,
      answer$: (visit) => retrieved$(visit, served, encoding),
    },
    {
      method: 'POST',
      path: `${responses}/:id/cancel`,
      answer$: (visit) => cancelled$(visit, served, encoding),
    },
  ];
};

/** Encodes the calls of an agent as responses. */
interface Encoding {
  /** Streams the events of a response. */
  readonly format: (
    conversation: string | undefined,
    decided?: ResponseRef['decided'],
    reading?: Reading,
  ) => StreamFormat;
  /** Emits the encoder of all events once they are complete. */
  readonly read: (
    conversation?: string,
    decided?: ResponseRef['decided'],
  ) => OperatorFunction<AgentEvent, ResponseEncoder>;
  /** Emits a response as it is now. */
  readonly current$: (chat: Chat, ref: ResponseRef) => Observable<ResponseObject>;
}

const createEncoding = ({ model, approvals }: Served, masks: MaskOptions): Encoding => {
  const encoderOf = (
    conversation: string | undefined,
    decided: ResponseRef['decided'] = [],
    discarded: readonly string[] = [],
  ) =>
    createResponseEncoder({
      model,
      masks: createMasks(masks),
      // A response without a conversation cannot be continued.
      asking:
        conversation === undefined ? undefined : approvals?.createAsking(model, decided.at(-1)),
      conversation,
      decided,
      discarded,
    });
  const read: Encoding['read'] = (conversation, decided) => (event$) =>
    defer(() => {
      const encoder = encoderOf(conversation, decided);
      return concat(event$.pipe(encoded(encoder, masks), ignoreElements()), of(encoder));
    });
  return {
    read,
    format: (conversation, decided, { after, discarded } = fromBeginning) => ({
      headers: eventStreamHeaders,
      encode$: (event$) =>
        defer(() =>
          event$.pipe(
            encoded(encoderOf(conversation, decided, discarded), masks),
            filter(({ sequence_number }) => sequence_number > after),
          ),
        ),
    }),
    current$: ({ id, events$, past$, runs$ }, { callId, decided }) =>
      forkJoin([past$(callId), runs$]).pipe(
        concatMap(([past, runs]) => {
          const place = runs.findIndex((run) => run.callId === callId);
          const status = place === 0 ? 'in_progress' : 'queued';
          return events$(callId).pipe(
            withoutErrors(past),
            read(id, decided),
            map(({ response, hasAsked }) => ({
              ...response(),
              id: responseIdOf({ callId, decided }),
              ...(place !== -1 && !hasAsked() && { status }),
            })),
          );
        }),
      ),
  };
};

/** Answers a request whose response is not stored. */
const alone$ = (
  { alone$: call$ }: Visit,
  { format, read }: Encoding,
  { request, messages: { input, history }, asked, isStream }: ResponseRequest,
): Observable<Response> =>
  call$({ request, metadata: metadataOf(asked), input, history }).pipe(
    concatMap(({ stream$, follow$ }) =>
      isStream ? stream$(format(undefined)) : follow$.pipe(read(), map(asJson)),
    ),
  );

const stored$ = (
  visit: Visit,
  served: Served,
  { format, read, current$ }: Encoding,
  request: ResponseRequest,
): Observable<Response> =>
  begun$(visit, served, request).pipe(
    concatMap(({ chat, ref, errors }) => {
      const { callId, decided } = ref;
      if (request.isStream) return chat.stream$(callId, format(chat.id, decided), errors);
      if (request.isBackground) {
        // The call may not have begun yet.
        const { repeated } = request.asked;
        return current$(chat, ref).pipe(map((it) => Response.json({ ...it, ...repeated })));
      }
      return chat
        .follow$(callId)
        .pipe(takeUntil(visit.left$), withoutErrors(errors), read(chat.id, decided), map(asJson));
    }),
  );

const retrieved$ = (
  visit: Visit,
  served: Served,
  { format, current$ }: Encoding,
): Observable<Response> =>
  defer(() => {
    const ref = refOf(visit.ids['id']);
    const { callId, decided } = ref;
    const { searchParams } = new URL(visit.request.url);
    const isStream = searchParams.get('stream') === 'true';
    const after = Number(searchParams.get('starting_after') ?? -1);
    if (!Number.isInteger(after)) {
      throw refuse("'starting_after' must be the number of an event.", 'starting_after');
    }
    return responseChat$(visit, served, ref).pipe(
      concatMap((chat) =>
        isStream
          ? chat.past$(callId).pipe(
              concatMap((past) => {
                const discarded = discardedIn(past.takenBack);
                const rest = format(chat.id, decided, { after, discarded });
                return chat.stream$(callId, rest, withErrors(past));
              }),
            )
          : current$(chat, ref).pipe(map((it) => Response.json(it))),
      ),
    );
  });

const cancelled$ = (visit: Visit, served: Served, { current$ }: Encoding): Observable<Response> =>
  defer(() => {
    const ref = refOf(visit.ids['id']);
    const { callId } = ref;
    return responseChat$(visit, served, ref).pipe(
      concatMap((chat) =>
        concat(
          chat.stop$(callId).pipe(
            concatMap((stopped) => (stopped === 0 ? EMPTY : chat.follow$(callId))),
            // An error of the call is a part of its response.
            catchError(() => EMPTY),
            ignoreElements(),
          ),
          current$(chat, ref),
        ),
      ),
      map((it) => Response.json(it)),
    );
  });

const asJson = ({ response }: ResponseEncoder): Response => Response.json(response());

/** Begins a response. */
const begun$ = (
  visit: Visit,
  served: Served,
  request: ResponseRequest,
): Observable<Begun<Chat>> => {
  const { decisions, previous, conversation, isBackground } = request;
  const { approvals } = served;
  if (approvals !== undefined && decisions.length > 0) {
    return approvals.decided$(visit, decisions, previous, conversation);
  }
  const { messages, history, input } = request.messages;
  const metadata = metadataOf(request.asked);
  const how = { request: request.request, metadata, continues: isBackground };
  const own = newChatId();
  const started$ = defer(() => {
    if (previous !== undefined) {
      const place = { shown: [{ id: previous.callId, isOwn: true }], check: checkFor(messages) };
      return responseChat$(visit, served, previous, 'previous_response_id').pipe(
        concatMap((chat) => chat.start$({ ...how, input: messages, ...place })),
      );
    }
    return conversation === undefined
      ? visit.chat(own).start$({ ...how, input, earlier: history.map(withId) })
      : visit.chat(conversation).start$({ ...how, input: messages });
  });
  return started$.pipe(
    concatMap((callId) =>
      visit.chatOf$(callId).pipe(map((chat) => ({ chat, ref: { callId, decided: [] } }))),
    ),
  );
};

/** A response is continued once it has ended, with the results that it waits for. */
const checkFor =
  (input: readonly InputMessage[]): Placing['check'] =>
  (path, isRunning) => {
    if (isRunning) throw inProgress();
    const given = idsIn(input[0], 'tool_result');
    const hasMessage = input.some(({ role }) => role === 'user');
    assertForClient(path, given, hasMessage);
    const asked = suspensionsIn(path).filter(isForClient);
    assertAnswered(new Set(asked.map(({ toolCall }) => toolCall.id)), given);
  };

const inProgress = (): MillraceError =>
  refuse('The earlier answer is still in progress.', 'previous_response_id', 'conflict', 409);

type ResponseObject = ReturnType<ResponseEncoder['response']>;

/** Encodes the events of a call as those of its response. */
export const encoded =
  (encoder: ResponseEncoder, masks: MaskOptions): OperatorFunction<AgentEvent, ResponseEvent> =>
  (event$) =>
    event$.pipe(
      takeWhile((event) => encoder.note(event), true),
      encodedBy(toParts(createMasks(masks)), (part) => encoder.take(part)),
    );

/** Omits the errors before a call was resumed. */
const withoutErrors = (past?: Past): MonoTypeOperatorFunction<AgentEvent> =>
  filter(
    ({ type, seq }) => type !== 'error' || past?.takenBack.some((it) => it.seq === seq) !== true,
  );

/** The conversation of a response. Errors with 404 if it is not one of this user. */
const responseChat$ = (
  visit: Visit,
  { approvals }: Served,
  ref: ResponseRef,
  param?: string,
): Observable<Chat> =>
  visit.chatOf$(ref.callId).pipe(
    catchError((error: unknown) => {
      throw isMillraceError(error) && error.status === 404 ? noSuchResponse(param) : error;
    }),
    concatMap((chat) => {
      if (ref.decided.length === 0) return of(chat);
      if (approvals === undefined) throw noSuchResponse(param);
      return approvals.questionsOf$(chat, ref).pipe(map(() => chat));
    }),
  );

const newChatId = (): string => `conv_${crypto.randomUUID().replaceAll('-', '')}`;

/** Gives each message a call of its own, as in conversations that the server has stored. */
const withId = (message: InputMessage, index: number): Message => ({
  ...message,
  id: `earlier-${index}/0`,
});
