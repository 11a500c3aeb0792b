import { type Demand, type ModelChunk, type ModelContext, restoreAsyncContext } from 'millrace';
import {
  BehaviorSubject,
  combineLatest,
  concatMap,
  defer,
  distinctUntilChanged,
  filter,
  finalize,
  map,
  type Observable,
  type ObservableInput,
  of,
  ReplaySubject,
  share,
  switchMap,
  take,
  tap,
} from 'rxjs';

/** Shares requests: while one of a key is under way, further subscribers get its answer from the start. */
export interface SingleFlight<T> {
  /**
   * Subscribes to the request under way, or starts one. `start` gets a context for all readers: its demand is open while
   * one of theirs is, it retries while one of them may, and its reports reach them all. The request is aborted when the last reader has left. `read` maps an
   * item for one reader; `pays` is true for the first reader that is still there, until one has read all.
   */
  readonly join$: (
    key: string,
    context: ModelContext,
    start: (shared: ModelContext) => Observable<T>,
    read: (item: T, pays: () => boolean) => readonly ModelChunk[],
  ) => Observable<ModelChunk>;
}

interface Flight<T> {
  readonly items$: Observable<T>;
  readonly readers$: BehaviorSubject<readonly ModelContext[]>;
  isPaid: boolean;
}

export const createSingleFlight = <T>(): SingleFlight<T> => {
  const flights = new Map<string, Flight<T>>();
  const begin = (
    key: string,
    context: ModelContext,
    start: (shared: ModelContext) => Observable<T>,
  ): Flight<T> => {
    const readers$ = new BehaviorSubject<readonly ModelContext[]>([]);
    const items$ = defer(() => start(sharedContext(context, readers$))).pipe(
      finalize(() => {
        if (flights.get(key) === flight) flights.delete(key);
      }),
      share({ connector: () => new ReplaySubject<T>(Infinity) }),
    );
    const flight: Flight<T> = { items$, readers$, isPaid: false };
    flights.set(key, flight);
    return flight;
  };
  return {
    join$: (key, context, start, read) =>
      defer(() => {
        const flight = flights.get(key) ?? begin(key, context, start);
        const { items$, readers$ } = flight;
        // A copy: two requests may have the same context.
        const reader = { ...context };
        const pays = (): boolean => !flight.isPaid && readers$.value[0] === reader;
        const settle = (): void => {
          flight.isPaid ||= pays();
        };
        readers$.next([...readers$.value, reader]);
        return items$.pipe(
          restoreAsyncContext(),
          concatMap((item) => whenOpen(context.demand, () => read(item, pays))),
          tap({ complete: settle, error: settle }),
          finalize(() => readers$.next(readers$.value.filter((it) => it !== reader))),
        );
      }),
  };
};

const sharedContext = (
  first: ModelContext,
  readers$: BehaviorSubject<readonly ModelContext[]>,
): ModelContext => ({
  ...first,
  demand: anyOpen(readers$),
  retryBudget: jointBudget(readers$),
  report: (event) => readers$.value.forEach(({ report }) => report(event)),
  shortened: (messages) => readers$.value.forEach(({ shortened }) => shortened?.(messages)),
});

/**
 * A retry is for all readers, so each pays for it. It is refused once none has one left: otherwise, the first to ask would decide
 * how often the others may.
 */
const jointBudget = (
  readers$: BehaviorSubject<readonly ModelContext[]>,
): NonNullable<ModelContext['retryBudget']> => ({
  take: () => readers$.value.map(({ retryBudget }) => retryBudget?.take() ?? true).some(Boolean),
});

/** The joint demand of readers: open while that of one is. */
const anyOpen = (readers$: BehaviorSubject<readonly ModelContext[]>): Demand => ({
  get isOpen() {
    const readers = readers$.value;
    return readers.length === 0 || readers.some(({ demand }) => demand.isOpen);
  },
  open$: readers$.pipe(
    switchMap((readers) =>
      readers.length === 0
        ? of(true)
        : combineLatest(readers.map(({ demand }) => demand.open$)).pipe(
            map((levels) => levels.some(Boolean)),
          ),
    ),
    distinctUntilChanged(),
    restoreAsyncContext(),
  ),
});

/** Reads a value when demand is open: immediately, or later. */
const whenOpen = <T>(demand: Demand, read: () => readonly T[]): ObservableInput<T> =>
  demand.isOpen
    ? read()
    : demand.open$.pipe(
        filter((isOpen) => isOpen),
        take(1),
        concatMap(read),
      );
