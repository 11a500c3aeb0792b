import { concat, concatMap, defer, map, type Observable, of } from 'rxjs';
import { badRequest, fieldOf, isShortId, notBlank } from '../inbound.js';
import type { ListQuery } from './collection.js';
import { notFound } from './guard.js';
import { toUiMessages } from './history.js';
import type { ChatProtocol, Visit } from './protocol.js';

/** The routes for a list of conversations, and for each of them as a whole, below `path`. */
export const chatsRoutes =
  (path: string): ChatProtocol =>
  () => {
    const one = `${path}/chat/:id`;
    const chatOf = ({ chat, ids: { id = '' } }: Visit) => chat(id);
    return [
      { method: 'GET', path: `${path}/chat`, answer$: listed$ },
      {
        method: 'GET',
        path: one,
        answer$: (visit) => shown$(visit, searchIn(visit).get('at') ?? undefined),
      },
      {
        method: 'PATCH',
        path: one,
        answer$: (visit) =>
          visit.body$.pipe(
            concatMap((body) => {
              const title = notBlank(fieldOf(body, 'title'));
              return chatOf(visit).rename$(title.slice(0, 1_000));
            }),
            map((title) => {
              if (title === undefined) throw notFound();
              return Response.json({ id: chatOf(visit).id, title });
            }),
          ),
      },
      {
        method: 'DELETE',
        path: one,
        answer$: (visit) =>
          concat(
            chatOf(visit).remove$,
            defer(() => of(new Response(null, { status: 204 }))),
          ),
      },
      {
        method: 'POST',
        path: `${one}/head`,
        answer$: (visit) =>
          visit.body$.pipe(
            map((body) => fieldOf(body, 'at')),
            concatMap((at) => {
              if (!isShortId(at)) throw badRequest("'at' must be the id of a message");
              return concat(chatOf(visit).moveHead$(at), shown$(visit));
            }),
          ),
      },
      {
        method: 'GET',
        path: `${one}/changes`,
        answer$: (visit) => visit.events$(chatOf(visit).changes$),
      },
    ];
  };

const searchIn = ({ request }: Visit): URLSearchParams => new URL(request.url).searchParams;

const shown$ = ({ chat, ids: { id = '' } }: Visit, at?: string): Observable<Response> =>
  chat(id)
    .history$(at)
    .pipe(
      map(({ messages, ...shown }) =>
        Response.json({ id, messages: toUiMessages(messages), ...shown }),
      ),
    );

const mostListed = 200;

const listed$ = (visit: Visit): Observable<Response> =>
  defer(() => {
    const query = queryIn(searchIn(visit));
    return visit.chats$({ ...query, limit: query.limit + 1 }).pipe(
      map((found) => {
        const chats = found.slice(0, query.limit);
        const last = found.length > query.limit ? chats.at(-1) : undefined;
        return Response.json({
          chats,
          ...(last && { next: `${last.updatedAt}~${last.id}` }),
        });
      }),
    );
  });

const queryIn = (search: URLSearchParams): ListQuery & { readonly limit: number } => {
  const limit = Number(search.get('limit') ?? 50);
  if (!Number.isInteger(limit) || limit < 1) throw badRequest("'limit' must be a positive number");
  const words = search.get('search') ?? '';
  if (words.length > 1_000) throw badRequest("'search' is longer than 1000 characters");
  const before = search.get('before');
  const [, savedAt, id] = /^(\d{1,16}(?:\.\d{1,16})?)~(.{1,512})$/su.exec(before ?? '') ?? [];
  if (before !== null && id === undefined)
    throw badRequest("'before' must be the 'next' of a list");
  return {
    limit: Math.min(limit, mostListed),
    ...(words !== '' && { search: words }),
    ...(id !== undefined && { before: { savedAt: Number(savedAt), id } }),
  };
};
