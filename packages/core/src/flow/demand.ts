import type { Observable } from 'rxjs';
import { BehaviorSubject, combineLatest, distinctUntilChanged, map, switchMap } from 'rxjs';
import { misuse } from '../values/errors.js';

/** Whether a consumer wants more. Sources that read from outside pause while it is closed. */
export interface Demand {
  readonly isOpen: boolean;
  /** The level: the present one on subscription, then each change. Hot. */
  readonly open$: Observable<boolean>;
}

/** The consumer's side of a `Demand`. */
export interface DemandGate extends Demand {
  /** Says how many values wait: closes at the high-water mark, opens again at half of it. */
  backlog(waiting: number): void;
  /** Opens for good: the consumer has gone. */
  release(): void;
}

/** Events that may wait for a consumer before it pauses the source, unless it says otherwise. */
export const defaultHighWaterMark = 64;

/** Makes the gate of one consumer. It is a level, not a count of credits: a filter on the way takes nothing from it. */
export const createDemand = (highWaterMark = defaultHighWaterMark): DemandGate => {
  if (!(highWaterMark >= 1)) throw misuse(`createDemand() needs a high-water mark of at least 1.`);
  const level$ = new BehaviorSubject(true);
  let released = false;
  return {
    get isOpen() {
      return level$.value;
    },
    // A level that changed while it was being told is told as it is now.
    open$: level$.pipe(
      map(() => level$.value),
      distinctUntilChanged(),
    ),
    backlog: (waiting) => {
      if (released) return;
      if (waiting >= highWaterMark) level$.next(false);
      else if (waiting <= highWaterMark / 2) level$.next(true);
    },
    release: () => {
      released = true;
      level$.next(true);
    },
  };
};

/** The demand of a consumer that takes whatever comes, as a plain `subscribe` does. */
export const openDemand: Demand = createDemand();

/** The demand of all consumers on one way: open while each of them is. */
export interface JoinableDemand extends Demand {
  /** Adds one more, and returns what takes it away. */
  join(demand: Demand): () => void;
}

export const joinDemand = (...first: readonly (Demand | undefined)[]): JoinableDemand => {
  const members$ = new BehaviorSubject(first.filter((demand) => demand !== undefined));
  return {
    get isOpen() {
      return members$.value.every(({ isOpen }) => isOpen);
    },
    open$: members$.pipe(switchMap(allOpen$), distinctUntilChanged()),
    join: (demand) => {
      members$.next([...members$.value, demand]);
      return () => {
        // One that has joined twice leaves once.
        const index = members$.value.lastIndexOf(demand);
        if (index !== -1) members$.next(members$.value.toSpliced(index, 1));
      };
    },
  };
};

const allOpen$ = ([first = openDemand, ...more]: readonly Demand[]): Observable<boolean> =>
  more.length === 0
    ? first.open$
    : combineLatest([first, ...more].map(({ open$ }) => open$)).pipe(
        map((levels) => levels.every(Boolean)),
      );
