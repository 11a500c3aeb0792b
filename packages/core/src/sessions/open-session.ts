import {
  concat,
  concatMap,
  defer,
  EMPTY,
  endWith,
  ignoreElements,
  map,
  type Observable,
  ReplaySubject,
  share,
  take,
  tap,
} from 'rxjs';
import { contained } from '../contained.js';
import { isMillraceError, MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import type { Session } from '../session.js';
import { createSemaphore } from '../traffic/semaphore.js';
import { noUsage } from '../usage.js';
import { type SessionState, stateVersion } from './session-state.js';
import type { PendingWork } from './pending-work.js';
import type { SessionStore, StoredSession } from './session-store.js';

/** A session that is open in this process: its handles share what is known of its state in the store. */
export interface OpenSession {
  readonly version: number | undefined;
  /** Refuses what would be done to a session that is open no more. */
  assertOpen(): void;
  save$(session: Session): Observable<number>;
  close$(session: Session): Observable<never>;
}

/** Opens sessions, each once. */
export const createOpenSessions = (
  store: SessionStore,
  saving: PendingWork,
): ((session: Session) => Observable<OpenSession>) => {
  const open = new Map<string, Observable<OpenSession>>();
  return (session) => {
    const { id } = session;
    const known = open.get(id);
    if (known !== undefined) return known;
    const opening$ = defer(() => store.load$(id)).pipe(
      contained(),
      take(1),
      failAs('store', `The state of the session '${id}' could not be loaded`),
      concatMap((stored) => {
        const opened = createOpenSession(store, saving, stored, () => open.delete(id));
        return stored === undefined
          ? [opened]
          : session.loadState$(stored.state).pipe(
              endWith(undefined),
              map(() => opened),
            );
      }),
      tap({ error: () => open.delete(id) }),
      // Two who open it at once load it once.
      share({ connector: () => new ReplaySubject<OpenSession>(1), resetOnComplete: false }),
    );
    open.set(id, opening$);
    return opening$;
  };
};

const createOpenSession = (
  store: SessionStore,
  { track$ }: PendingWork,
  stored: StoredSession | undefined,
  onEnd: () => void,
): OpenSession => {
  let version = stored?.version;
  let status: 'open' | 'closed' | 'conflict' = 'open';
  const end = (why: 'closed' | 'conflict'): void => {
    status = why;
    onEnd();
  };
  const assertOpen = (): void => {
    if (status !== 'open') throw noMoreOpen(status);
  };
  const whenOpen$ = (work: () => Observable<never>): Observable<never> =>
    defer(() => (status === 'open' ? work() : EMPTY));
  // One save follows the other: each has to know the version of the one before it.
  const saves = createSemaphore({ max: 1, maxQueue: Number.MAX_SAFE_INTEGER });
  const save$ = (session: Session): Observable<number> =>
    track$(
      saves.hold$(() => {
        assertOpen();
        return session.saveState$().pipe(
          concatMap((state) => store.save$(session.id, state, version)),
          contained(),
          take(1),
          failAs('store', `The state of the session '${session.id}' could not be saved`),
          tap({
            next: (saved) => {
              version = saved;
            },
            error: (error: unknown) => {
              if (isMillraceError(error) && error.code === 'conflict') end('conflict');
            },
          }),
        );
      }),
    );
  return {
    get version() {
      return version;
    },
    assertOpen,
    save$,
    close$: (session) => {
      const free$ = concat(
        session.loadState$(emptyState),
        defer(() => {
          end('closed');
          return EMPTY;
        }),
      );
      // What is held may be another handle's by the time that it is saved.
      return whenOpen$(() =>
        concat(
          save$(session).pipe(ignoreElements()),
          whenOpen$(() => free$),
        ),
      );
    },
  };
};

const emptyState: SessionState = {
  version: stateVersion,
  messages: [],
  groups: {},
  approvals: [],
  usage: noUsage,
  interrupted: false,
};

const noMoreOpen = (why: 'closed' | 'conflict'): MillraceError =>
  why === 'closed'
    ? new MillraceError('invalidState', 'The session has been closed. Open it again.')
    : new MillraceError(
        'conflict',
        'Somebody else has saved the session. Open it again to go on with what is there now.',
      );
