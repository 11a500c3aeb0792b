import {
  type AgentEvent,
  type InputMessage,
  isMillraceError,
  type Message,
  type MillraceError,
  suspensionsIn,
} from '@millrace/core';
import { isRecord } from '@millrace/core/values';
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
import { assertForClient, fieldOf, idOf, isForClient } from '../inbound.js';
import { createMasks, type MaskOptions } from '../masks.js';
import { encodedBy, toParts } from '../parts/to-parts.js';
import { type AskedFor, metadataOf } from './asked-for.js';
import { type Begun, withErrors } from './decisions.js';
import {
  assertAnswered,
  type Conversation,
  conversationOf,
  entriesOfInput,
  idsIn,
} from './messages.js';
import { refuse } from './refusals.js';
import {
  createResponseEncoder,
  type ResponseEncoder,
  type ResponseEvent,
} from './response-encoder.js';
import { noSuchResponse, refOf, type ResponseRef, responseIdOf } from './response-ids.js';
import { eventStreamHeaders, flagIn, type Served, settingsOf } from './settings.js';

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
  const encoderOf = (
    conversation: string | undefined,
    decided: ResponseRef['decided'] = [],
    discarded: readonly string[] = [],
  ) =>
    createResponseEncoder({
      model: served.model,
      masks: createMasks(masks),
      // A response outside of all conversations cannot be continued.
      asking:
        conversation === undefined
          ? undefined
          : served.approvals?.createAsking(served.model, decided.at(-1)),
      conversation,
      decided,
      discarded,
    });
  const formatOf = (
    conversation: string | undefined,
    decided?: ResponseRef['decided'],
    { after, discarded } = fromBeginning,
  ): StreamFormat => ({
    headers: eventStreamHeaders,
    encode$: (event$) =>
      defer(() =>
        event$.pipe(
          encoded(encoderOf(conversation, decided, discarded), masks),
          filter(({ sequence_number }) => sequence_number > after),
        ),
      ),
  });
  /** Emits the encoder of these events after them. */
  const read =
    (
      conversation?: string,
      decided?: ResponseRef['decided'],
    ): OperatorFunction<AgentEvent, ResponseEncoder> =>
    (event$) =>
      defer(() => {
        const encoder = encoderOf(conversation, decided);
        return concat(event$.pipe(encoded(encoder, masks), ignoreElements()), of(encoder));
      });
  /** Emits a response as it is now. */
  const current$ = (
    { id, events$, past$, runs$ }: Chat,
    { callId, decided }: ResponseRef,
  ): Observable<ResponseObject> =>
    forkJoin([past$(callId), runs$]).pipe(
      concatMap(([past, runs]) => {
        const place = runs.findIndex((run) => run.callId === callId);
        return events$(callId).pipe(
          withoutErrors(past),
          read(id, decided),
          map(({ response, hasAsked }) => ({
            ...response(),
            id: responseIdOf({ callId, decided }),
            ...(place !== -1 && !hasAsked() && { status: place === 0 ? 'in_progress' : 'queued' }),
          })),
        );
      }),
    );

  const begin$ = (visit: Visit, body: unknown): Observable<Response> => {
    const request = readRequest(body, served);
    const { isStream, isBackground, asked } = request;
    if (!request.isStored) {
      const { input, history } = request.messages;
      const call = { request: request.request, metadata: metadataOf(asked), input, history };
      return visit
        .alone$(call)
        .pipe(
          concatMap(({ stream$, follow$ }) =>
            isStream ? stream$(formatOf(undefined)) : follow$.pipe(read(), map(asJson)),
          ),
        );
    }
    return begun$(visit, served, request).pipe(
      concatMap(({ chat, ref, errors }) => {
        const { callId, decided } = ref;
        if (isStream) return chat.stream$(callId, formatOf(chat.id, decided), errors);
        if (isBackground) {
          // The call may not have begun yet.
          const { repeated } = asked;
          return current$(chat, ref).pipe(map((it) => Response.json({ ...it, ...repeated })));
        }
        return chat
          .follow$(callId)
          .pipe(takeUntil(visit.left$), withoutErrors(errors), read(chat.id, decided), map(asJson));
      }),
    );
  };

  const retrieved$ = (visit: Visit): Observable<Response> =>
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
                  const discarded = past.takenBack.flatMap((event) =>
                    event.type === 'messageDiscarded' ? [event.messageId] : [],
                  );
                  const reading = { after, discarded };
                  return chat.stream$(
                    callId,
                    formatOf(chat.id, decided, reading),
                    withErrors(past),
                  );
                }),
              )
            : current$(chat, ref).pipe(map((it) => Response.json(it))),
        ),
      );
    });
  const cancelled$ = (visit: Visit): Observable<Response> =>
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

  const responses = `${path}/responses`;
  return [
    {
      method: 'POST',
      path: responses,
      answer$: (visit) => visit.body$.pipe(concatMap((body) => begin$(visit, body))),
    },
    { method: 'GET', path: `${responses}/:id`, answer$: retrieved$ },
    { method: 'POST', path: `${responses}/:id/cancel`, answer$: cancelled$ },
  ];
};

const asJson = ({ response }: ResponseEncoder): Response => Response.json(response());

/** Begins a response. */
const begun$ = (
  visit: Visit,
  served: Served,
  request: ReturnType<typeof readRequest>,
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

const readRequest = (body: unknown, served: Served) => {
  const format = fieldOf(fieldOf(body, 'text'), 'format') ?? undefined;
  const { request, isStream, ...asks } = settingsOf(body, served, {
    maxTokens: ['max_output_tokens'],
    functionOf: (tool) => tool,
    form: {
      param: 'text.format',
      type: fieldOf(format, 'type') ?? undefined,
      schema: fieldOf(format, 'schema'),
    },
  });
  const isStored = flagIn(body, 'store', true);
  const isBackground = flagIn(body, 'background');
  const previous = previousIn(body);
  const conversation = conversationIn(body);
  if (fieldOf(body, 'prompt') != null) throw refuse("'prompt' is not supported.", 'prompt');
  if (previous !== undefined && conversation !== undefined) {
    throw refuse("Pass 'previous_response_id' or 'conversation', not both.", 'conversation');
  }
  const continues = previous !== undefined || conversation !== undefined;
  if (!isStored && (continues || isBackground)) {
    throw refuse(
      "Without 'store', a response can neither be continued nor run in the background.",
      'store',
    );
  }
  const items = fieldOf(body, 'input');
  const decisions = served.approvals?.decisionsIn(items, continues) ?? [];
  const messages =
    decisions.length > 0
      ? noMessages
      : conversationOf(entriesOfInput(items, served.parts), continues);
  const given = fieldOf(body, 'instructions') ?? undefined;
  if (given !== undefined && typeof given !== 'string') {
    throw refuse("'instructions' must be a string.", 'instructions');
  }
  const instructions = [given, messages.instructions].filter((it) => it !== undefined);
  const asked: AskedFor = {
    ...asks,
    ...(instructions.length > 0 && { instructions: instructions.join('\n\n') }),
    // An answered question continues its call.
    ...(decisions.length === 0 && {
      repeated: {
        background: isBackground,
        instructions: given ?? null,
        max_output_tokens: asks.maxTokens ?? null,
        metadata: metadataIn(body),
        previous_response_id: previous === undefined ? null : responseIdOf(previous),
        store: isStored,
        temperature: request.temperature ?? null,
        text: { format: format ?? { type: 'text' } },
        tool_choice: fieldOf(body, 'tool_choice') ?? 'auto',
        tools: fieldOf(body, 'tools') ?? [],
      },
    }),
  };
  return {
    ...{ request, isStream, isStored, isBackground },
    ...{ previous, conversation, messages, decisions, asked },
  };
};

const noMessages: Conversation = { instructions: undefined, messages: [], input: [], history: [] };

const previousIn = (body: unknown): ResponseRef | undefined => {
  const id = fieldOf(body, 'previous_response_id') ?? undefined;
  return id === undefined ? undefined : refOf(id, 'previous_response_id');
};

const conversationIn = (body: unknown): string | undefined => {
  const given = fieldOf(body, 'conversation') ?? undefined;
  const id = isRecord(given) ? fieldOf(given, 'id') : given;
  if (id === undefined) return undefined;
  try {
    return idOf(id, 'conversation');
  } catch {
    throw refuse("'conversation' must be an id, or an object with one.", 'conversation');
  }
};

const metadataIn = (body: unknown): object => {
  const metadata = fieldOf(body, 'metadata') ?? {};
  const entries = isRecord(metadata) ? Object.entries(metadata) : [];
  const isRight = entries.length <= 16 && entries.every(([, value]) => typeof value === 'string');
  if (isRecord(metadata) && isRight) return metadata;
  throw refuse("'metadata' must be an object of up to 16 strings.", 'metadata');
};

/** Each is of a call of its own, as it is in a conversation that the server has had. */
const withId = (message: InputMessage, index: number): Message => ({
  ...message,
  id: `earlier-${index}/0`,
});
