import { restoreAsyncContext } from '../../../flow/async-context.js';
import { createSemaphore } from '../../traffic/limit-concurrency.js';
import {
  BehaviorSubject,
  buffer,
  bufferCount,
  concat,
  concatMap,
  connect,
  debounceTime,
  defer,
  delay,
  EMPTY,
  filter,
  finalize,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  scan,
  type SchedulerLike,
  Subject,
  takeUntil,
  takeWhile,
  tap,
} from 'rxjs';

/** A reason to look for turns of a user that wait. */
export interface Due {
  readonly userId: string;
  /** Whether turns count for which extraction has failed for good. */
  readonly withParked: boolean;
}

export interface QueueOptions<Result> {
  /** Extracts the turns of a user that wait. Never errors. */
  readonly work: (due: Due) => Observable<Result>;
  readonly quietMs: number;
  readonly everyTurns: number;
  readonly concurrency: number;
  readonly scheduler: SchedulerLike;
}

export interface Queue<Result> {
  /** Runs the work while subscribed, and emits its results. Subscribe once. */
  readonly results$: Observable<Result>;
  readonly add: (due: Due) => void;
  /** Starts all waiting work, also what comes meanwhile, and completes when nothing waits or runs, or is closed. */
  readonly flush$: () => Observable<never>;
  readonly close: () => void;
}

/**
 * Starts the work of a user after a quiet time or a number of turns, one at a time for each user, and a limited number
 * of users at a time. A user without work takes no memory.
 */
export const createQueue = <Result>(options: QueueOptions<Result>): Queue<Result> => {
  const { work, concurrency } = options;
  const due$ = new Subject<Due>();
  const flushes$ = new Subject<undefined>();
  const closed$ = new Subject<undefined>();
  const done$ = new Subject<Done>();
  const open$ = new BehaviorSubject(0);
  const semaphore = createSemaphore({ max: concurrency, maxQueue: Number.MAX_SAFE_INTEGER });

  const worked$ = (userId: string, batch: readonly Due[]): Observable<Result> => {
    const withParked = batch.some((due) => due.withParked);
    return concat(
      semaphore.hold$(() => work({ userId, withParked })),
      defer(() => {
        done$.next({ userId, count: batch.length });
        open$.next(open$.value - batch.length);
        return EMPTY;
      }),
    );
  };
  return {
    results$: due$.pipe(
      groupBy(({ userId }) => userId, { duration: (user$) => isIdle$(user$, user$.key, done$) }),
      mergeMap((user$) =>
        batches$(user$, flushes$, options).pipe(
          restoreAsyncContext(),
          concatMap((batch) => worked$(user$.key, batch)),
        ),
      ),
      takeUntil(closed$),
      finalize(() => open$.complete()),
    ),
    add: (due) => {
      due$.next(due);
      open$.next(open$.value + 1);
    },
    flush$: () =>
      open$.pipe(
        takeWhile((open) => open > 0),
        // Again for turns that come meanwhile: they do not wait for a quiet time.
        tap(() => flushes$.next(undefined)),
        ignoreElements(),
      ),
    close: () => closed$.next(undefined),
  };
};

/** The turns of a user that are due together. */
const batches$ = (
  user$: Observable<Due>,
  flushes$: Observable<unknown>,
  {
    quietMs,
    everyTurns,
    scheduler,
  }: Pick<QueueOptions<never>, 'quietMs' | 'everyTurns' | 'scheduler'>,
): Observable<readonly Due[]> =>
  user$.pipe(
    connect((shared$) =>
      shared$.pipe(
        buffer(
          merge(
            shared$.pipe(debounceTime(quietMs, scheduler)),
            // The reply of the call comes first, even if the extraction is synchronous.
            shared$.pipe(bufferCount(everyTurns), delay(0, scheduler)),
            flushes$,
          ),
        ),
      ),
    ),
    filter((batch) => batch.length > 0),
  );

/** Turns of a user that were worked on. */
interface Done {
  readonly userId: string;
  readonly count: number;
}

/** Emits when a user has no turn that waits or is worked on. */
const isIdle$ = (
  user$: Observable<Due>,
  userId: string,
  done$: Observable<Done>,
): Observable<unknown> =>
  merge(
    user$.pipe(map(() => 1)),
    done$.pipe(
      filter((done) => done.userId === userId),
      map(({ count }) => -count),
    ),
  ).pipe(
    scan((waiting, change) => waiting + change, 0),
    filter((waiting) => waiting === 0),
  );
