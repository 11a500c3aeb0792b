import {
  concat,
  defer,
  EMPTY,
  filter,
  map,
  type Observable,
  of,
  pairwise,
  startWith,
  switchMap,
} from 'rxjs';
import { type Context, followed$ } from './commands.js';
import { type Conversation, deleted, loaded, set, type Update } from './conversation-state.js';
import type { Change } from './server.js';

/** Joins the running answer, and shows what other tabs do, until the user does something. */
export const following = (
  { id, server, state$ }: Context,
  change$: Observable<Change | undefined>,
): Observable<Update> => {
  const load$ = (at?: string): Observable<Update> => server.history$(id, at).pipe(map(loaded));
  const joined$ = (before?: string): Observable<Update> =>
    defer(() => {
      const { running } = state$.value;
      if (running === undefined) return EMPTY;
      return running === before
        ? of(set({ status: 'ready', running: undefined }))
        : concat(followed$(server.join$(id)), load$(), joined$(running));
    });
  return change$.pipe(
    // Deletions before the last command are ignored.
    map((change, at) => (at === 0 && change?.isDeleted === true ? undefined : change)),
    startWith(undefined),
    pairwise(),
    map(([before, change], at) => ({ isStart: at === 0, before, change })),
    filter((news) => news.isStart || isNews(state$.value, news)),
    switchMap((news) => {
      if (news.change?.isDeleted === true) return of(deleted);
      const { messages } = state$.value;
      const at = hasMoved(state$.value, news) ? undefined : messages.at(-1)?.id;
      return concat(isNews(state$.value, news) ? load$(at) : EMPTY, joined$());
    }),
  );
};

interface News {
  /** Whether it is what was known when the tab began to follow. */
  readonly isStart: boolean;
  readonly before: Change | undefined;
  readonly change: Change | undefined;
}

/** Whether the page does not show what the server has reported. */
const isNews = (state: Conversation, news: News): boolean => {
  const { status, running } = state;
  const { change } = news;
  if (change === undefined) return false;
  if (change.isDeleted || status === 'loading') return true;
  return status === 'answering'
    ? change.running !== undefined && change.running !== running
    : change.running !== running || hasMoved(state, news);
};

/** Whether the head has moved away from what the tab shows. A tab that shows another branch stays there. */
const hasMoved = ({ head }: Conversation, { isStart, before, change }: News): boolean => {
  const wasShown = before === undefined || headOf(before) === head;
  return !isStart && wasShown && headOf(change) !== head;
};

const headOf = (change: Change | undefined): string | undefined =>
  change?.isDeleted === false ? change.head : undefined;
