import { concatMap, defer, map, type Observable, of } from 'rxjs';
import { inputOfUiMessages, placeOfUiMessages } from '../ai-sdk/input-of-ui-messages.js';
import { toUiMessageStream } from '../ai-sdk/to-ui-message-stream.js';
import { fieldOf, notBlank } from '../inbound.js';
import { uiMessageStreamHeaders } from '../responses.js';
import { type Client, clientOf, toUiMessages } from './history.js';
import type { Chat, ChatProtocol, StreamFormat, Visit } from './protocol.js';
import { lastSeen } from './rejoining.js';

/** The routes for clients of the AI SDK, below `path`. */
export const aiSdkRoutes =
  (path: string, target: 6 | 7): ChatProtocol =>
  ({ approvals, masks }) => {
    const formatFor = (client: Client): StreamFormat => ({
      headers: uiMessageStreamHeaders,
      encode$: toUiMessageStream({ target, ...masks, ...(approvals && { approvals }), ...client }),
      last: '[DONE]',
    });
    const asked$ = ({ body$, chat }: Visit): Observable<Response> =>
      body$.pipe(
        concatMap((body) => {
          const { input, chatId, ...client } = inputOfUiMessages(body);
          const { start$, stream$ } = chat(chatId);
          return start$({ input, ...placeOfUiMessages(body) }).pipe(
            concatMap((callId) => stream$(callId, formatFor(client))),
          );
        }),
      );
    const joined$ = ({ request, chat, ids }: Visit): Observable<Response> =>
      defer(() => {
        const { id = '' } = ids;
        const joinedChat = chat(id);
        const seen = lastSeen(request)?.callId;
        const callId$ =
          seen === undefined ? joinedChat.runs$.pipe(map(([run]) => run?.callId)) : of(seen);
        return callId$.pipe(
          concatMap((callId) =>
            callId === undefined
              ? of(new Response(null, { status: 204 }))
              : joining$(joinedChat, callId, formatFor),
          ),
        );
      });
    const chat = `${path}/chat`;
    return [
      { method: 'POST', path: chat, answer$: asked$ },
      {
        method: 'GET',
        path: `${chat}/:id`,
        answer$: ({ chat: of, ids: { id = '' } }) =>
          of(id).history$.pipe(
            map(({ messages, running }) =>
              Response.json({ id, messages: toUiMessages(messages), running }),
            ),
          ),
      },
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

/** Joins a call: without what was taken back before, and with the results that its client has brought. */
export const joining$ = (
  { past$, history$, stream$ }: Chat,
  callId: string,
  formatFor: (client: Client) => StreamFormat,
): Observable<Response> =>
  past$(callId).pipe(
    concatMap((past) =>
      (past.results.length === 0
        ? of({})
        : history$.pipe(map(({ messages }) => clientOf(toUiMessages(messages), past.results)))
      ).pipe(concatMap((client) => stream$(callId, formatFor(client), past))),
    ),
  );
