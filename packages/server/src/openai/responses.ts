import { type AgentEvent, type InputMessage, isMillraceError, type Message } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  endWith,
  filter,
  forkJoin,
  ignoreElements,
  map,
  type Observable,
  type OperatorFunction,
  takeUntil,
  tap,
} from 'rxjs';
import type { Chat, Route, StreamFormat, Visit } from '../chat/protocol.js';
import type { Past } from '../chat/past.js';
import { discardedIn, withoutTakenBack } from '../chat/rejoining.js';
import { fieldOf, idOf } from '../inbound.js';
import { createMasks, type MaskOptions } from '../masks.js';
import { encodeParts } from '../parts/encode-parts.js';
import { type AskedFor, metadataOf } from './asked-for.js';
import { conversationOf, entriesOfInput } from './messages.js';
import { refusal, refuse } from './refusals.js';
import { beginWith, continueAfter } from './forks.js';
import {
  createResponseEncoder,
  type ResponseEncoder,
  type ResponseEvent,
  responseIdOf,
} from './response-encoder.js';
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
  const encoderOf = (conversation: string | undefined, discarded: readonly string[]) =>
    createResponseEncoder({
      model: served.model,
      masks: createMasks(masks),
      conversation,
      discarded,
    });
  const formatOf = (
    conversation: string | undefined,
    { after, discarded } = fromBeginning,
  ): StreamFormat => ({
    headers: eventStreamHeaders,
    encode$: (event$) =>
      defer(() =>
        event$.pipe(
          encoded(encoderOf(conversation, discarded), masks),
          filter(({ sequence_number }) => sequence_number > after),
        ),
      ),
  });
  /** Emits the response that these events make. */
  const responseOf =
    (conversation: string | undefined): OperatorFunction<AgentEvent, ResponseObject> =>
    (event$) =>
      defer(() => {
        const encoder = encoderOf(conversation, []);
        return event$.pipe(
          encoded(encoder, masks),
          ignoreElements(),
          endWith(undefined),
          map(() => encoder.response()),
        );
      });
  /** Emits the response of a call as it is now. */
  const current$ = (
    { id, events$, past$, runs$ }: Chat,
    callId: string,
  ): Observable<ResponseObject> =>
    forkJoin([past$(callId), runs$]).pipe(
      concatMap(([past, runs]) => {
        const place = runs.findIndex((run) => run.callId === callId);
        return events$(callId).pipe(
          withoutTakenBack(past.takenBack, 0),
          responseOf(id),
          map((response) => ({
            ...response,
            id: responseIdOf(callId),
            ...(place !== -1 && { status: place === 0 ? 'in_progress' : 'queued' }),
          })),
        );
      }),
    );

  const begin$ = (visit: Visit, body: unknown): Observable<Response> => {
    const request = readRequest(body, served);
    const { isStream, conversation } = request;
    const { messages, history, input } = request.messages;
    const call = { request: request.request, metadata: metadataOf(request.asked) };
    if (!request.isStored) {
      return visit
        .alone$({ ...call, input, history })
        .pipe(
          concatMap(({ stream$, follow$ }) =>
            isStream
              ? stream$(formatOf(undefined))
              : follow$.pipe(responseOf(undefined), map(asJson)),
          ),
        );
    }
    const { isBackground } = request;
    const own = newChatId();
    const started$ = defer(() => {
      const how = { ...call, continues: isBackground };
      if (request.previous !== undefined) {
        const prepare = continueAfter(request.previous, own);
        return responseChat$(visit, request.previous, 'previous_response_id').pipe(
          concatMap((chat) => chat.start$({ ...how, input: messages, prepare })),
        );
      }
      return conversation === undefined
        ? visit.chat(own).start$({ ...how, input, prepare: beginWith(history.map(withId)) })
        : visit.chat(conversation).start$({ ...how, input: messages });
    });
    return started$.pipe(
      concatMap((callId) =>
        visit.chatOf$(callId).pipe(
          concatMap((chat) => {
            if (isStream) return chat.stream$(callId, formatOf(chat.id));
            const whole$ = chat.follow$(callId).pipe(takeUntil(visit.left$), responseOf(chat.id));
            // The call may not have begun yet.
            const { repeated } = request.asked;
            const begun$ = current$(chat, callId).pipe(map((it) => ({ ...it, ...repeated })));
            return (isBackground ? begun$ : whole$).pipe(map(asJson));
          }),
        ),
      ),
    );
  };

  const retrieved$ = (visit: Visit): Observable<Response> =>
    defer(() => {
      const callId = callIdOf(visit.ids['id']);
      const { searchParams } = new URL(visit.request.url);
      const isStream = searchParams.get('stream') === 'true';
      const after = Number(searchParams.get('starting_after') ?? -1);
      if (!Number.isInteger(after)) {
        throw refuse("'starting_after' must be the number of an event.", 'starting_after');
      }
      return responseChat$(visit, callId).pipe(
        concatMap((chat) =>
          isStream
            ? chat.past$(callId).pipe(
                concatMap((past) => {
                  const reading = { after, discarded: discardedIn(past.takenBack) };
                  return chat.stream$(callId, formatOf(chat.id, reading), withErrors(past));
                }),
              )
            : current$(chat, callId).pipe(map(asJson)),
        ),
      );
    });
  const cancelled$ = (visit: Visit): Observable<Response> =>
    defer(() => {
      const callId = callIdOf(visit.ids['id']);
      return responseChat$(visit, callId).pipe(
        concatMap((chat) =>
          concat(
            chat.stop$(callId).pipe(
              concatMap((stopped) => (stopped === 0 ? EMPTY : chat.follow$(callId))),
              // An error of the call is a part of its response.
              catchError(() => EMPTY),
              ignoreElements(),
            ),
            current$(chat, callId),
          ),
        ),
        map(asJson),
      );
    });

  const responses = `${path}/responses`;
  return [
    {
      method: 'POST',
      path: responses,
      failed: refusal,
      answer$: (visit) => visit.body$.pipe(concatMap((body) => begin$(visit, body))),
    },
    { method: 'GET', path: `${responses}/:id`, failed: refusal, answer$: retrieved$ },
    { method: 'POST', path: `${responses}/:id/cancel`, failed: refusal, answer$: cancelled$ },
  ];
};

const asJson = (response: ResponseObject): Response => Response.json(response);

type ResponseObject = ReturnType<ResponseEncoder['response']>;

const encoded =
  (encoder: ResponseEncoder, masks: MaskOptions): OperatorFunction<AgentEvent, ResponseEvent> =>
  (event$) =>
    event$.pipe(
      tap((event) => {
        encoder.note(event);
      }),
      encodeParts({}, createMasks(masks), (part) => encoder.take(part)),
    );

/** Only the errors before a call was resumed: the encoder empties what was discarded, so numbers stay the same. */
const withErrors = (past: Past): Past => ({
  ...past,
  takenBack: past.takenBack.filter(({ type }) => type === 'error'),
});

const callIdOf = (id: unknown, param?: string): string => {
  const [, callId] = /^resp_([\w-]+)$/u.exec(typeof id === 'string' ? id : '') ?? [];
  if (callId === undefined) throw noSuchResponse(param);
  return callId;
};

const noSuchResponse = (param: string | null = null) =>
  refuse('There is no such response.', param, 'not_found', 404);

const responseChat$ = (visit: Visit, callId: string, param?: string): Observable<Chat> =>
  visit.chatOf$(callId).pipe(
    catchError((error: unknown) => {
      throw isMillraceError(error) && error.status === 404 ? noSuchResponse(param) : error;
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
    throw refuse("Give 'previous_response_id' or 'conversation', not both.", 'conversation');
  }
  const continues = previous !== undefined || conversation !== undefined;
  if (!isStored && (continues || isBackground)) {
    throw refuse(
      "Without 'store', a response can neither continue nor run in the background.",
      'store',
    );
  }
  const messages = conversationOf(entriesOfInput(fieldOf(body, 'input')), continues);
  const given = fieldOf(body, 'instructions') ?? undefined;
  if (given !== undefined && typeof given !== 'string') {
    throw refuse("'instructions' must be a string.", 'instructions');
  }
  const instructions = [given, messages.instructions].filter((it) => it !== undefined);
  const asked: AskedFor = {
    ...asks,
    ...(instructions.length > 0 && { instructions: instructions.join('\n\n') }),
    repeated: {
      background: isBackground,
      instructions: given ?? null,
      max_output_tokens: request.maxTokens ?? null,
      metadata: metadataIn(body),
      previous_response_id: previous === undefined ? null : responseIdOf(previous),
      store: isStored,
      temperature: request.temperature ?? null,
      text: { format: format ?? { type: 'text' } },
      tool_choice: fieldOf(body, 'tool_choice') ?? 'auto',
      tools: fieldOf(body, 'tools') ?? [],
    },
  };
  return { request, isStream, isStored, isBackground, previous, conversation, messages, asked };
};

const previousIn = (body: unknown): string | undefined => {
  const id = fieldOf(body, 'previous_response_id') ?? undefined;
  return id === undefined ? undefined : callIdOf(id, 'previous_response_id');
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
