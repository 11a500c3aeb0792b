import { concatMap, map, type Observable, of } from 'rxjs';
import {
  answerOfUiMessages,
  inputOfUiMessages,
  placeOfUiMessages,
  verdictsOfUiMessages,
} from '../ai-sdk/input-of-ui-messages.js';
import { uiMessageChunks } from '../ai-sdk/to-ui-message-stream.js';
import { fieldOf, notBlank } from '../inbound.js';
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
      (visit: Visit) =>
      (client: Client, answered?: readonly string[]): StreamFormat => ({
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
    const asked$ = (visit: Visit): Observable<Response> =>
      visit.body$.pipe(
        concatMap((body) => {
          const { chat } = visit;
          const verdicts = verdictsOfUiMessages(body);
          if (verdicts.length > 0) {
            const { id, messageId } = answerOfUiMessages(body);
            return decidedStream$(chat(id), verdicts, (answered) =>
              formatFor(visit)({ messageId }, answered),
            );
          }
          const { input, chatId, ...client } = inputOfUiMessages(body, parts);
          const { start$, stream$ } = chat(chatId);
          return start$({ input, ...placeOfUiMessages(body) }).pipe(
            concatMap((callId) => stream$(callId, formatFor(visit)(client))),
          );
        }),
      );
    const joined$ = (visit: Visit): Observable<Response> => {
      const { id = '' } = visit.ids;
      const joined = visit.chat(id);
      const at = new URL(visit.request.url).searchParams.get('at');
      const seen = lastSeen(visit.request)?.callId;
      const callId$ =
        seen === undefined
          ? joined.history$(at ?? undefined).pipe(map(({ running }) => running))
          : visit.chatOf$(seen).pipe(
              map((owner) => {
                if (owner.id !== id) throw notFound();
                return seen;
              }),
            );
      return callId$.pipe(
        concatMap((callId) =>
          callId === undefined
            ? of(new Response(null, { status: 204 }))
            : joining$(joined, callId, formatFor(visit)),
        ),
      );
    };
    const chat = `${path}/chat`;
    return [
      { method: 'POST', path: chat, answer$: asked$ },
      { method: 'GET', path: `${chat}/:id/stream`, answer$: joined$ },
      {
        method: 'POST',
        path: `${chat}/:id/stop`,
        answer$: ({ chat: of, ids: { id = '' } }) =>
          of(id)
            .stop$()
            .pipe(map((stopped) => Response.json({ stopped }))),
      },
      {
        method: 'POST',
        path: `${chat}/:id/steer`,
        answer$: ({ chat: of, body$, ids: { id = '' } }) =>
          body$.pipe(
            concatMap((body) => of(id).steer$(notBlank(fieldOf(body, 'text')))),
            map((delivered) => Response.json({ delivered })),
          ),
      },
    ];
  };
