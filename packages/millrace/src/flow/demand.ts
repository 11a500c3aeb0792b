import type { Observable } from 'rxjs';
import { BehaviorSubject, combineLatest, distinctUntilChanged, map, switchMap } from 'rxjs';
import { restoreAsyncContext } from './async-context.js';
import { misuse } from '../values/errors.js';

/** The demand of a consumer. Sources that read from outside pause while it is closed. */
export interface Demand {
  readonly isOpen: boolean;
  /** Whether it is open: the current value on subscription, then each change. Hot. */
  readonly open$: Observable<boolean>;
}

/** The consumer's side of a `Demand`. */
export interface DemandGate extends Demand {
  /** Sets the number of waiting values: closes at the high-water mark, opens again at half of it. */
  backlog(waiting: number): void;
  /** Opens permanently: the consumer has gone. */
  release(): void;
}

/** The default number of events that may wait before the source is paused. */
export const defaultHighWaterMark = 64;

/** Creates the demand of one consumer. A level, not a count of credits, so filters do not consume it. */
export const createDemand = (highWaterMark = defaultHighWaterMark): DemandGate => {
  if (!(highWaterMark >= 1)) throw misuse(`createDemand() needs a high-water mark of at least 1.`);
  return new Gate(highWaterMark);
};

class Gate implements DemandGate {
  private readonly level$ = new BehaviorSubject(true);
  // If the level changed during its delivery, later observers get the current one.
  readonly open$ = this.level$.pipe(
    map(() => this.isOpen),
    distinctUntilChanged(),
  );
  private readonly highWaterMark: number;
  private released = false;

  constructor(highWaterMark: number) {
    this.highWaterMark = highWaterMark;
  }

  get isOpen(): boolean {
    return this.level$.value;
  }

  backlog(waiting: number): void {
    if (this.released) return;
    if (waiting >= this.highWaterMark) this.level$.next(false);
    else if (waiting <= this.highWaterMark / 2) this.level$.next(true);
  }

  release(): void {
    this.released = true;
    this.level$.next(true);
  }
}

/** The demand of a consumer without backpressure, as with a plain `subscribe`. */
export const openDemand: Demand = createDemand();

/** The joint demand of several consumers: open while all of them are. */
export interface JoinableDemand extends Demand {
  /** Adds a demand; returns a function that removes it. */
  join(demand: Demand): () => void;
}

export const joinDemand = (...first: readonly (Demand | undefined)[]): JoinableDemand =>
  new Joined(first.filter((demand) => demand !== undefined));

class Joined implements JoinableDemand {
  private members: readonly Demand[];
  private readonly members$: BehaviorSubject<readonly Demand[]>;
  readonly open$: Observable<boolean>;

  constructor(first: readonly Demand[]) {
    this.members$ = new BehaviorSubject((this.members = first));
    this.open$ = this.members$.pipe(
      // If one joins during the delivery, later observers get the current list.
      switchMap(() => allOpen$(this.members)),
      distinctUntilChanged(),
      restoreAsyncContext(),
    );
  }

  get isOpen(): boolean {
    return this.members.every(({ isOpen }) => isOpen);
  }

  join(demand: Demand): () => void {
    this.members$.next((this.members = [...this.members, demand]));
    return () => {
      // A demand that joined twice is removed once.
      const index = this.members.lastIndexOf(demand);
      if (index === -1) return;
      this.members$.next((this.members = this.members.toSpliced(index, 1)));
    };
  }
}

const allOpen$ = ([first = openDemand, ...more]: readonly Demand[]): Observable<boolean> =>
  more.length === 0
    ? first.open$
    : combineLatest([first, ...more].map(({ open$ }) => open$)).pipe(
        map((levels) => levels.every(Boolean)),
      );
