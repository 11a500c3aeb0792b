import {
  distinctUntilChanged,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
} from 'rxjs';

/** One who waits. */
export interface Waiting {
  /** What others see of it. */
  readonly shown: unknown;
  /** Milliseconds since the epoch, by the scheduler. */
  readonly expiresAt: number;
  readonly scheduler: SchedulerLike;
}

/** How a wait has ended. */
export type Ending = 'decided' | 'expired' | 'withdrawn';

/** Who waits, and how those have ended who do not any more. */
export interface WaitingRoom<Entry extends Waiting> {
  /** Hot: what is shown of all who wait now, then again whenever that changes. Never errors, never completes. */
  readonly shown$: Observable<readonly Entry['shown'][]>;
  enter(id: string, entry: Entry): void;
  find(id: string): Entry | undefined;
  /** Ends a wait. False where it has not begun, or has ended before. */
  leave(id: string, ending: Ending): boolean;
  /** How a wait has ended, as far as that is remembered. */
  endingOf(id: string): Ending | undefined;
}

/** Tells whether the time is over. */
export const isLate = ({ expiresAt, scheduler }: Omit<Waiting, 'shown'>): boolean =>
  scheduler.now() >= expiresAt;

/** Makes a room that remembers at most so many endings. Those whose time is over are forgotten when there are new ones. */
export const createWaitingRoom = <Entry extends Waiting>(
  remembered: number,
): WaitingRoom<Entry> => {
  const waiting = new Map<string, Entry>();
  const endings = new Map<string, Omit<Waiting, 'shown'> & { readonly ending: Ending }>();
  const changed$ = new Subject<void>();
  let all: readonly Entry['shown'][] | undefined;

  const change = (): void => {
    all = undefined;
    changed$.next();
  };
  const forget = (): void => {
    for (const [id, ending] of endings) {
      if (endings.size < remembered && !isLate(ending)) return;
      endings.delete(id);
    }
  };

  return {
    // Each gets what is true when it is told: a change within a notification cannot be followed by what was before it.
    shown$: merge(changed$, of(undefined)).pipe(
      map(() => (all ??= Array.from(waiting.values(), ({ shown }) => shown))),
      distinctUntilChanged(),
    ),
    enter: (id, entry) => {
      waiting.set(id, entry);
      change();
    },
    find: (id) => waiting.get(id),
    leave: (id, ending) => {
      const entry = waiting.get(id);
      if (entry === undefined) return false;
      const { expiresAt, scheduler } = entry;
      waiting.delete(id);
      forget();
      endings.set(id, { ending, expiresAt, scheduler });
      change();
      return true;
    },
    endingOf: (id) => endings.get(id)?.ending,
  };
};
