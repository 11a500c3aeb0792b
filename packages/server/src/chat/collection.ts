import type { ContentBlock, Message } from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { KeptSession, SessionStore, SessionSummary } from 'millrace/sessions';
import { defined, pathTo } from 'millrace/values';
import {
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  reduce,
  startWith,
  Subject,
  switchMap,
  take,
  takeWhile,
  tap,
  throwIfEmpty,
  toArray,
} from 'rxjs';
import { notFound } from './guard.js';
import type { OpenSessions } from './open-sessions.js';
import { tree$ } from './places.js';
import type { OpenRun, Runs } from './runs.js';
import { newestBelow, type ShownConversation } from './shown-conversation.js';
import { firstWords, titleFrom } from './title-from.js';

/** A conversation in a list. */
export interface ListedChat {
  readonly id: string;
  readonly title: string;
  /** When it was saved last, in milliseconds since the epoch. */
  readonly updatedAt: number;
}

export interface ListQuery {
  readonly search?: string;
  readonly before?: Pick<SessionSummary, 'savedAt' | 'id'>;
  readonly limit?: number;
}

/** A change of a conversation, as its other clients receive it. */
export type ChatChange =
  | (Pick<ShownConversation, 'head'> & { readonly running?: string; readonly title?: string })
  | { readonly deleted: true };

/** Makes the title of a conversation from its messages. */
export type TitleOf = (
  messages: readonly Message[],
) => string | Promise<string> | Observable<string>;

/** The conversations of a server as a list. */
export interface Collection {
  /** Emits the conversations whose ids begin with this, the latest first. */
  list$(prefix: string, query: ListQuery): Observable<readonly ListedChat[]>;
  /** Sets the title of a conversation, and emits it as it is kept; `undefined` if it does not exist. */
  rename$(sessionId: string, title: string): Observable<string | undefined>;
  /** Continues at the end of the branch of a message by default. Errors with `conflict` (409) if it is unknown. */
  moveHead$(sessionId: string, at: string): Observable<never>;
  /** Removes a conversation and everything that the store keeps for it, and completes. */
  remove$(sessionId: string): Observable<never>;
  /** As `remove$`, unless a call of it runs or waits. */
  removeIdle$(sessionId: string): Observable<never>;
  /** Emits the current state of a conversation, and again after each change. Completes once it is removed. */
  changes$(sessionId: string): Observable<ChatChange>;
}

interface CollectionOptions {
  readonly store: { readonly calls: CallStore; readonly sessions: SessionStore };
  readonly runs: Runs;
  readonly existing$: (sessionId: string) => Observable<KeptSession>;
  readonly withCurrent$: OpenSessions['withCurrent$'];
  readonly shown$: (sessionId: string) => Observable<ShownConversation>;
  /** Drops everything that the server holds in memory for a session. */
  readonly forget: (sessionId: string) => void;
  readonly inTurn$: <T>(sessionId: string, work: () => Observable<T>) => Observable<T>;
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly title?: TitleOf | undefined;
}

export interface Titles {
  /** Gives a conversation a title when its first call starts. The call saves it. */
  begun(session: KeptSession, question: readonly ContentBlock[] | undefined): void;
  /** Asks the application for the title, after the first answer. */
  answered$(session: KeptSession): Observable<never>;
}

const untitled = 'New conversation';

export const createCollection = (
  options: CollectionOptions,
): Collection & { readonly titles: Titles } => {
  const { runs, existing$, withCurrent$, inTurn$ } = options;
  const changed$ = new Subject<string>();
  const removed$ = new Subject<string>();
  const saved$ = (session: KeptSession): Observable<never> =>
    session.save$().pipe(
      tap(() => {
        changed$.next(session.id);
      }),
      ignoreElements(),
    );
  const removal$ = (sessionId: string): Observable<never> =>
    concat(
      removedFromStore$(options, sessionId),
      defer(() => {
        options.forget(sessionId);
        removed$.next(sessionId);
        return EMPTY;
      }),
    );
  return {
    list$: (prefix, query) => defer(() => listed$(options, prefix, query)),
    rename$: (sessionId, name) =>
      inTurn$(sessionId, () =>
        withCurrent$(existing$(sessionId), (session) => {
          session.rename(firstWords(name));
          return concat(saved$(session), of(session.title));
        }).pipe(defaultIfEmpty(undefined)),
      ),
    moveHead$: (sessionId, at) =>
      inTurn$(sessionId, () =>
        withCurrent$(existing$(sessionId).pipe(throwIfEmpty(notFound)), (session) =>
          concat(movedHead$(session, at), saved$(session)),
        ),
      ),
    remove$: (sessionId) =>
      inTurn$(sessionId, () =>
        concat(
          defer(() => ended$(runs, sessionId)),
          removal$(sessionId),
        ),
      ),
    removeIdle$: (sessionId) =>
      inTurn$(sessionId, () =>
        runs.ofSession(sessionId).length > 0 ? EMPTY : removal$(sessionId),
      ),
    changes$: (sessionId) => changes$(options, sessionId, changed$, removed$),
    titles: createTitles(options.title, saved$),
  };
};

const createTitles = (
  title: TitleOf | undefined,
  saved$: (session: KeptSession) => Observable<never>,
): Titles => ({
  begun: titleFrom,
  answered$: (session) =>
    title === undefined
      ? EMPTY
      : tree$(session).pipe(
          concatMap((tree) => {
            const given = title(pathTo(tree));
            return typeof given === 'string' ? of(given) : from(given);
          }),
          take(1),
          concatMap((name) => {
            session.rename(firstWords(name));
            return saved$(session);
          }),
        ),
});

const listed$ = (
  { store, runs }: CollectionOptions,
  prefix: string,
  query: ListQuery,
): Observable<readonly ListedChat[]> =>
  store.sessions.find$({ prefix, ...query }).pipe(
    take(1),
    map((found) =>
      [...unsavedIn(runs, prefix, query), ...found].map(({ id, title, savedAt }) => ({
        id: id.slice(prefix.length),
        title: title ?? untitled,
        updatedAt: savedAt,
      })),
    ),
  );

/** Conversations whose first call runs: the store does not have them yet. */
const unsavedIn = (runs: Runs, prefix: string, query: ListQuery): readonly SessionSummary[] => {
  if (query.before !== undefined) return [];
  const search = query.search?.toUpperCase() ?? '';
  const found = new Map<string, SessionSummary>();
  for (const { session } of runs.all()) {
    const { id, title = '', version } = session;
    const isNew = version === undefined && id.startsWith(prefix);
    if (!isNew || !title.toUpperCase().includes(search)) continue;
    found.set(id, { id, ...(title !== '' && { title }), savedAt: Date.now() });
  }
  return [...found.values()].reverse();
};

const movedHead$ = (session: KeptSession, at: string): Observable<never> =>
  tree$(session).pipe(
    concatMap((tree) => session.memory.moveHead$?.(newestBelow(tree, at)) ?? EMPTY),
    ignoreElements(),
  );

/** Removes a session and everything that the store keeps for it. */
const removedFromStore$ = (
  { store, existing$ }: CollectionOptions,
  sessionId: string,
): Observable<never> =>
  concat(
    existing$(sessionId).pipe(concatMap((session) => session.close$())),
    callsRemoved$(store.calls, sessionId),
    store.sessions.remove$(sessionId).pipe(ignoreElements()),
  );

/** Removes the calls of a session. Errors with `conflict` if another process runs one. */
const callsRemoved$ = ({ driver }: CallStore, sessionId: string): Observable<never> =>
  driver.list$({ sessionId }).pipe(
    mergeMap((calls) => calls),
    map(({ callId }) => callId),
    // Collect the ids first: the list must not change while it is read.
    toArray(),
    concatMap((callIds) =>
      driver.removeAll$(callIds).pipe(
        reduce((left, removed) => {
          for (const { callId } of removed) left.delete(callId);
          return left;
        }, new Set(callIds)),
      ),
    ),
    concatMap((left) => left),
    concatMap((callId) => driver.remove$(callId)),
    ignoreElements(),
  );

/** Stops the calls of a session, and completes once they are over. */
const ended$ = (runs: Runs, sessionId: string): Observable<never> => {
  const open: readonly OpenRun[] = runs.ofSession(sessionId);
  runs.stop(sessionId);
  return concat(...open.map(({ over$ }) => over$.pipe(ignoreElements())));
};

const changes$ = (
  { runs, shown$, existing$ }: CollectionOptions,
  sessionId: string,
  changed$: Observable<string>,
  removed$: Observable<string>,
): Observable<ChatChange> =>
  merge(
    merge(changed$, runs.changed$).pipe(
      filter((id) => id === sessionId),
      startWith(sessionId),
      switchMap(() => changeOf$(sessionId, shown$, existing$)),
    ),
    removed$.pipe(
      filter((id) => id === sessionId),
      map(() => ({ deleted: true }) as const),
    ),
  ).pipe(
    distinctUntilChanged((one, other) => JSON.stringify(one) === JSON.stringify(other)),
    takeWhile((change) => !('deleted' in change), true),
  );

const changeOf$ = (
  sessionId: string,
  shown$: CollectionOptions['shown$'],
  existing$: CollectionOptions['existing$'],
): Observable<ChatChange> =>
  shown$(sessionId).pipe(
    concatMap(({ head, running }) =>
      concat(existing$(sessionId).pipe(map((session) => session.title)), of(undefined)).pipe(
        take(1),
        map((name) => ({ head, ...defined({ running, title: name }) })),
      ),
    ),
  );
