import {
  BehaviorSubject,
  ignoreElements,
  type Observable,
  takeUntil,
  takeWhile,
  timer,
} from 'rxjs';
import type { UserLimits } from '../limits/index.js';
import { closing, once, sessionsOf, tooMany } from './guard.js';
import type { Runs } from './runs.js';

/** Limits how many calls run, and refuses new ones once the server closes. */
export interface CallSlots {
  /** Takes a slot for a call. Returns the function that frees it. Throws `busy` if all slots are taken, or if the server is closing. */
  take(metadata: Readonly<Record<string, string>>): () => void;
  /** Throws if the server is closed. Returns whether calls may be resumed. */
  readonly assertOpen: () => boolean;
  /** Whether the server closes, or is closed. */
  readonly isClosing: () => boolean;
  /** Refuses new calls, and completes once all slots are free, or after the timeout. */
  drained$(timeoutMs: number): Observable<never>;
  close(): void;
}

export const createCallSlots = (
  runs: Pick<Runs, 'size' | 'all'>,
  { maxCalls, limits }: { readonly maxCalls: number; readonly limits?: UserLimits | undefined },
): CallSlots => {
  let status: 'open' | 'closing' | 'closed' = 'open';
  /** The number of calls that start, or have no conversation: they are not among the runs. */
  const taken$ = new BehaviorSubject(0);
  return {
    take: ({ userId }) => {
      if (status !== 'open') throw closing();
      if (runs.size + taken$.value >= maxCalls) throw tooMany(maxCalls);
      const own = sessionsOf(userId);
      const running = runs.all().filter(({ session }) => session.id.startsWith(own)).length;
      const free = limits?.(userId ?? '', running);
      taken$.next(taken$.value + 1);
      return once(() => {
        free?.();
        taken$.next(taken$.value - 1);
      });
    },
    isClosing: () => status !== 'open',
    assertOpen: () => {
      if (status === 'closed') throw closing();
      return status === 'open';
    },
    drained$: (timeoutMs) => {
      if (status === 'open') status = 'closing';
      return taken$.pipe(
        takeWhile((count) => count > 0),
        takeUntil(timer(timeoutMs)),
        ignoreElements(),
      );
    },
    close: () => {
      status = 'closed';
    },
  };
};
