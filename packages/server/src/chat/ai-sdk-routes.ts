import { concatMap, map, type Observable, of } from 'rxjs';
import {
  answerOfUiMessages,
  inputOfUiMessages,
  placeOfUiMessages,
  verdictsOfUiMessages,
} from '../ai-sdk/input-of-ui-messages.js';
import { uiMessageChunks } from '../ai-sdk/to-ui-message-stream.js';
import { fieldOf, notBlank, type PartOptions } from '../inbound.js';
import { uiMessageStreamHeaders } from '../responses.js';
import { asked, decidedStream$, joining$ } from './continuing.js';
import { notFound } from './guard.js';
import type { Client } from './history.js';
import type { ChatProtocol, StreamFormat, Visit } from './protocol.js';
import { lastSeen } from './rejoining.js';

/** The routes for clients of the AI SDK, below `path`. */
export const aiSdkRoutes =
  (path: string, target: 6 | 7): ChatProtocol =>
  ({ approvals, masks, parts }) => {
    const formatFor =
      (visit: Visit): FormatFor =>
      (client, answered) => ({
        headers: uiMessageStreamHeaders,
        encode$: uiMessageChunks({
          target,
          ...masks,
          ...asked(visit, approvals, answered),
          ...client,
        }),
        last: '[DONE]',
        isRest: answered !== undefined,
      });
    const chat = `${path}/chat`;
    return [
      {
        method: 'POST',
        path: chat,
        answer$: (visit) =>
          visit.body$.pipe(concatMap((body) => asked$(visit, formatFor(visit), body, parts))),
      },
      {
        method: 'GET',
        path: `${chat}/:id/stream`,
        answer$: (visit) => joined$(visit, formatFor(visit)),
      },
      {
        method: 'POST',
        path: `${chat}/:id/stop`,
        answer$: ({ chat: ofChat, ids: { id = '' } }) =>
          ofChat(id)
            .stop$()
            .pipe(map((stopped) => Response.json({ stopped }))),
      },
      {
        method: 'POST',
        path: `${chat}/:id/steer`,
        answer$: ({ chat: ofChat, body$, ids: { id = '' } }) =>
          body$.pipe(
            concatMap((body) => ofChat(id).steer$(notBlank(fieldOf(body, 'text')))),
            map((delivered) => Response.json({ delivered })),
          ),
      },
    ];
  };

/** The format of a stream for a client, which may have answered approvals. */
type FormatFor = (client: Client, answered?: readonly string[]) => StreamFormat;

const asked$ = (
  { chat }: Visit,
  formatFor: FormatFor,
  body: unknown,
  parts: PartOptions,
): Observable<Response> => {
  const verdicts = verdictsOfUiMessages(body);
  if (verdicts.length > 0) {
    const { id, messageId } = answerOfUiMessages(body);
    return decidedStream$(chat(id), verdicts, (answered) => formatFor({ messageId }, answered));
  }
  const { input, chatId, ...client } = inputOfUiMessages(body, parts);
  const { start$, stream$ } = chat(chatId);
  return start$({ input, ...placeOfUiMessages(body) }).pipe(
    concatMap((callId) => stream$(callId, formatFor(client))),
  );
};

/** Streams the call that the client has read, or the one that runs. */
const joined$ = (
  { chat, chatOf$, ids: { id = '' }, request }: Visit,
  formatFor: FormatFor,
): Observable<Response> => {
  const joined = chat(id);
  const at = new URL(request.url).searchParams.get('at');
  const seen = lastSeen(request)?.callId;
  const callId$ =
    seen === undefined
      ? joined.history$(at ?? undefined).pipe(map(({ running }) => running))
      : chatOf$(seen).pipe(
          map((owner) => {
            if (owner.id !== id) throw notFound();
            return seen;
          }),
        );
  return callId$.pipe(
    concatMap((callId) =>
      callId === undefined
        ? of(new Response(null, { status: 204 }))
        : joining$(joined, callId, formatFor),
    ),
  );
};
