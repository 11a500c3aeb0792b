import {
  asapScheduler,
  BehaviorSubject,
  catchError,
  combineLatest,
  concat,
  defer,
  distinct,
  distinctUntilChanged,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  observeOn,
  of,
  share,
  startWith,
  Subject,
  switchMap,
  tap,
} from 'rxjs';
import { aside, isBeside, performing } from './commands.js';
import {
  begun,
  type Command,
  type Conversation,
  heldIn,
  problemOf,
  restored,
  settled,
  unknownIn,
  type Update,
} from './conversation-state.js';
import { following } from './following.js';
import { Refusal } from './responses.js';
import type { Change, Server } from './server.js';
import type { Drafts } from './unsent.js';

interface Options {
  readonly server: Server;
  readonly newId: () => string;
  readonly drafts: Drafts;
  /** Whether the tab is shown: a hidden one needs no connection for the changes of others. */
  readonly isVisible$: Observable<boolean>;
}

/**
 * Loads a conversation, joins its running answer, performs commands, and follows what other tabs do. Emits each state, many
 * a second while an answer arrives. Never completes or errors: failures are a `problem`, and messages that may not have
 * arrived are `unsent`. Cold.
 */
export const conversation$ = (
  id: string,
  { server, newId, drafts, isVisible$ }: Options,
  command$: Observable<Command>,
): Observable<Conversation> =>
  defer(() => {
    const state$ = new BehaviorSubject<Conversation>(begun(id, drafts.read(id)));
    const change$ = new BehaviorSubject<Change | undefined>(undefined);
    const own$ = new Subject<Command>();
    // Decided once: the command itself changes the state.
    const all$ = merge(command$, own$).pipe(
      map((command) => ({ command, isBeside: isBeside(command, state$.value) })),
      share(),
    );
    const context = { id, server, newId, state$ };
    const { load$, handle$ } = performing(context);
    const follow$ = following(context, change$);
    const beside$ = aside(context, own$);

    const failed$ = failing(load$);
    return merge(
      facts$(server, state$),
      all$.pipe(
        filter((it) => !it.isBeside),
        map(({ command }) => command),
        startWith<Command>({ type: 'load' }),
        switchMap((command) =>
          concat(
            handle$(command).pipe(
              catchError((error: unknown) => failed$(error, command.type === 'load')),
            ),
            follow$.pipe(
              catchError((error: unknown, again$) => concat(failed$(error, true), again$)),
            ),
          ),
        ),
      ),
      all$.pipe(
        filter((it) => it.isBeside),
        mergeMap(({ command }) => beside$(command)),
      ),
      held$(state$, own$),
      others$(server.changes$(id), combineLatest([isVisible$, state$], isFree)).pipe(
        tap((change) => {
          change$.next(change);
        }),
        map(changed),
      ),
    ).pipe(
      map((update) => {
        const before = state$.value;
        const next = update(before);
        if (next.unsent !== before.unsent) drafts.write(id, next.unsent);
        return next;
      }),
      tap(state$),
      startWith(state$.value),
    );
  });

/** Sends what the user has given while the answer ran, after the state that it comes from. */
const held$ = (state$: Observable<Conversation>, own$: Subject<Command>): Observable<never> =>
  state$.pipe(
    map(heldIn),
    distinctUntilChanged((before, now) => before?.toolCallId === now?.toolCallId),
    observeOn(asapScheduler),
    tap((command) => {
      if (command !== undefined) own$.next(command);
    }),
    ignoreElements(),
  );

/** The facts of answers whose ends this tab does not know. */
const facts$ = (
  server: Pick<Server, 'facts$'>,
  state$: Observable<Conversation>,
): Observable<Update> =>
  state$.pipe(
    map((state) => ({
      id: state.id,
      missing: unknownIn(state).join(' '),
      at: state.messages.at(-1)?.id,
    })),
    distinctUntilChanged((before, now) => before.missing === now.missing),
    filter(({ missing }) => missing !== ''),
    distinct(({ missing }) => missing),
    switchMap(({ id, at }) =>
      server.facts$(id, at).pipe(
        map(restored),
        // A server that refuses them shows what the history has.
        catchError(() => EMPTY),
      ),
    ),
  );

/** A tab holds one stream: a browser opens only six connections to a server over HTTP/1.1. That of a running answer has its news. */
const isFree = (isVisible: boolean, { status }: Conversation): boolean =>
  isVisible && status !== 'answering';

/** The changes that other tabs make, while this one is free to follow them. Each stream begins with the state, which may be known. */
const others$ = (change$: Observable<Change>, isFree$: Observable<boolean>): Observable<Change> =>
  isFree$.pipe(
    distinctUntilChanged(),
    switchMap((isOpen) => (isOpen ? change$ : EMPTY)),
    distinctUntilChanged((before, now) => JSON.stringify(before) === JSON.stringify(now)),
    // A server that refuses it has a page that follows nothing.
    catchError(() => EMPTY),
  );

/** Shows the failure of a command; of a refused one, with the state of the server. */
const failing =
  (load$: () => Observable<Update>) =>
  (error: unknown, isLoad: boolean): Observable<Update> => {
    const failed: Update = (state) => {
      const isRetried = (isLoad || !(error instanceof Refusal)) && state.unsent.length === 0;
      const retry = isRetried ? { retry: { type: 'load' } as const } : {};
      const status = state.status === 'loading' ? 'loading' : 'ready';
      return { ...state, ...settled, status, problem: { ...problemOf(error), ...retry } };
    };
    return error instanceof Refusal && !isLoad
      ? load$().pipe(
          map((update): Update => (state) => ({ ...update(state), problem: problemOf(error) })),
          catchError(() => of(failed)),
        )
      : of(failed);
  };

/** Applies the change of another tab. */
const changed =
  ({ isDeleted, ...change }: Change): Update =>
  (state) => ({
    ...state,
    changes: state.changes + 1,
    ...('title' in change && !isDeleted && { title: change.title }),
  });
