import {
  type Observable,
  type SchedulerLike,
  catchError,
  concatMap,
  defer,
  EMPTY,
  exhaustMap,
  finalize,
  merge,
  mergeMap,
  repeat,
  Subject,
  takeUntil,
  timer,
} from 'rxjs';
import { longestDelayMs } from '../../values/options.js';
import type { ManagedSession } from './open-session.js';

export interface IdleOptions {
  readonly idleMs: number;
  readonly idleBytes: number;
  readonly scheduler: SchedulerLike;
}

export interface IdleSessions {
  /** A session that is idle from now on. */
  add(id: string, session: ManagedSession): void;
  /** A session that is used again. */
  remove(id: string): void;
  /** Closes all that are idle now. */
  closeAll(): void;
  /** A session that has ended. `isLast`: none is open. */
  forget(id: string, isLast: boolean): void;
}

type Idle = readonly [id: string, session: ManagedSession];

/** Closes sessions that are idle for too long, and those that were used least recently if all take too much memory. */
export const createIdleSessions = ({ idleMs, idleBytes, scheduler }: IdleOptions): IdleSessions => {
  /** The one that was used least recently comes first. */
  const idle = new Map<string, { readonly session: ManagedSession; readonly bytes: number }>();
  /** Those that are about to be closed, or could not be. */
  const due = new Set<string>();
  const due$ = new Subject<Idle>();
  const unmeasured$ = new Subject<Idle>();
  const added$ = new Subject<void>();
  const noneOpen$ = new Subject<void>();
  let bytes = 0;

  const take = (id: string): void => {
    bytes -= idle.get(id)?.bytes ?? 0;
    idle.delete(id);
  };
  const closeWhile = (isDue: (session: ManagedSession) => boolean): void => {
    const found: Idle[] = [];
    for (const [id, { session }] of idle) {
      if (!isDue(session)) break;
      take(id);
      due.add(id);
      found.push([id, session]);
    }
    // One that cannot be closed is idle again immediately.
    found.forEach((it) => due$.next(it));
  };
  const put = ([id, session]: Idle): void => {
    if (session.isUsed || session.status === 'closed' || session.status === 'idle') return;
    take(id);
    idle.set(id, { session, bytes: session.bytes });
    bytes += session.bytes;
    // One that could not be closed waits for the next that is idle.
    if (!due.delete(id)) closeWhile(() => bytes > idleBytes && idle.size > 1);
    added$.next();
  };
  const close$ = ([id, session]: Idle): Observable<never> =>
    defer(() => {
      const isUsedSince = session.isUsed || idle.has(id);
      if (isUsedSince) due.delete(id);
      return isUsedSince ? EMPTY : session.closeIdle$();
    }).pipe(ignoringErrors);
  const measureAndPut$ = (it: Idle): Observable<never> =>
    it[1].measure$().pipe(
      concatMap(() => EMPTY),
      ignoringErrors,
      finalize(() => put(it)),
    );
  const untilOneIsDue$ = (): Observable<unknown> => {
    const [first] = idle.values();
    if (first === undefined) return EMPTY;
    const waitMs = first.session.usedAt + idleMs - scheduler.now();
    return timer(Math.min(Math.max(waitMs, 0), longestDelayMs), scheduler);
  };
  const watch$ = defer(() => {
    closeWhile(({ usedAt }) => usedAt + idleMs <= scheduler.now());
    return EMPTY;
  }).pipe(repeat({ delay: untilOneIsDue$ }), takeUntil(noneOpen$));
  merge(
    due$.pipe(mergeMap(close$, 4)),
    unmeasured$.pipe(mergeMap(measureAndPut$)),
    added$.pipe(exhaustMap(() => watch$)),
  ).subscribe();
  return {
    add: (id, session) => {
      if (session.isUnmeasured) unmeasured$.next([id, session]);
      else put([id, session]);
    },
    remove: take,
    closeAll: () => closeWhile(() => true),
    forget: (id, isLast) => {
      take(id);
      due.delete(id);
      if (isLast) noneOpen$.next();
    },
  };
};

/** A session that cannot be closed stays open. */
export const ignoringErrors = catchError<never, Observable<never>>(() => EMPTY);
