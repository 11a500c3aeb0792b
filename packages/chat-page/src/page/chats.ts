import {
  BehaviorSubject,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  startWith,
  switchMap,
  tap,
} from 'rxjs';
import { problemOf } from './conversation-state.js';
import type { ChatPage, ChatSummary, Server } from './server.js';

/** The list of conversations, as the page shows it. */
export interface Chats {
  /** Newest first, as far as they are loaded. */
  readonly chats: readonly ChatSummary[];
  /** Where more begin, if there are any. */
  readonly next?: string | undefined;
  /** The text that the title or a message of each contains. */
  readonly search: string;
  readonly isLoading: boolean;
  readonly problem?: string | undefined;
}

export type ChatsCommand =
  | { readonly type: 'load' }
  | { readonly type: 'more' }
  | { readonly type: 'search'; readonly text: string }
  | { readonly type: 'rename'; readonly id: string; readonly title: string }
  | { readonly type: 'delete'; readonly id: string };

interface ChatsOptions {
  readonly server: Pick<Server, 'chats$' | 'rename$' | 'delete$'>;
  /** Emits when the user has probably stopped typing: until then, nothing is requested. */
  readonly pause$: Observable<unknown>;
  /** Called after each change of this tab, for other tabs. */
  readonly changed: () => void;
}

type Update = (state: Chats) => Chats;

const pageSize = 50;
const maxSize = 200;

/** Loads the list, and changes it. Emits each state; failures are a `problem`. Never completes or errors. Cold. */
export const chats$ = (options: ChatsOptions, command$: Observable<ChatsCommand>) =>
  defer((): Observable<Chats> => {
    const { server, pause$ } = options;
    const state$ = new BehaviorSubject<Chats>({ chats: [], search: '', isLoading: true });
    const load$ = defer(() => {
      const { chats, search } = state$.value;
      const limit = Math.min(Math.max(pageSize, chats.length), maxSize);
      return server.chats$({ search, limit }).pipe(map((page) => listed([], page)));
    });
    const more$ = defer(() => {
      const { chats, search, next: before } = state$.value;
      return before === undefined
        ? EMPTY
        : server
            .chats$({ search, before, limit: pageSize })
            .pipe(map((page) => listed(chats, page)));
    });
    const read$ = ({ type }: ChatsCommand): Observable<Update> =>
      type === 'more' ? more$ : concat(pause$.pipe(ignoreElements()), load$);
    return merge(
      command$.pipe(
        filter((command) => command.type === 'search'),
        map(({ text: search }): Update => (state) => ({ ...state, search, isLoading: true })),
      ),
      command$.pipe(
        filter(({ type }) => /^(?:load|more|search)$/u.test(type)),
        map(read$),
        startWith(load$),
        switchMap((update$) => update$.pipe(catchError((error: unknown) => of(failed(error))))),
      ),
      command$.pipe(
        concatMap((command) =>
          changed$(command, options).pipe(
            // The server has the old title or the conversation, still.
            catchError((error: unknown) =>
              concat(load$.pipe(catchError(() => EMPTY)), of(failed(error))),
            ),
          ),
        ),
      ),
    ).pipe(
      map((update) => update(state$.value)),
      tap(state$),
      startWith(state$.value),
    );
  });

/** Shows a change, and requests it. */
const changed$ = (command: ChatsCommand, { server, changed }: ChatsOptions): Observable<Update> => {
  const done = tap<never>({ complete: changed });
  switch (command.type) {
    case 'rename': {
      const { id, title } = command;
      const renamed = replacing(id, (chat) => [{ ...chat, title }]);
      return concat(of(renamed), server.rename$(id, title).pipe(done));
    }
    case 'delete':
      return concat(of(replacing(command.id, () => [])), server.delete$(command.id).pipe(done));
    default:
      return EMPTY;
  }
};

const listed =
  (before: readonly ChatSummary[], { chats, next }: ChatPage): Update =>
  ({ problem: _, ...state }) => {
    const known = new Set(before.map(({ id }) => id));
    const more = chats.filter(({ id }) => !known.has(id));
    return { ...state, chats: [...before, ...more], next, isLoading: false };
  };

const replacing =
  (id: string, change: (chat: ChatSummary) => readonly ChatSummary[]): Update =>
  ({ problem: _, ...state }) => ({
    ...state,
    chats: state.chats.flatMap((chat) => (chat.id === id ? change(chat) : [chat])),
  });

const failed =
  (error: unknown): Update =>
  (state) => ({ ...state, isLoading: false, problem: problemOf(error).text });

/** The server accepts such ids. */
export const isChatId = (id: unknown): id is string =>
  typeof id === 'string' && /^[\w-][\w.:@-]{0,127}$/u.test(id);

const maxTitle = 60;

/** The title of a conversation that the server does not have yet: the beginning of its first question. */
export const titleOf = (question: string): string => {
  const line = question.trim().replaceAll(/\s+/gu, ' ');
  return line === ''
    ? 'Picture'
    : line.length > maxTitle
      ? `${line.slice(0, maxTitle - 1)}…`
      : line;
};
