import { isMillraceError, MillraceError } from 'millrace';
import type { CallStoreDriver, Claim, StoredCall } from 'millrace/journal';
import { checkFormat, isRecord, messageOf, parsedJson } from 'millrace/values';
import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  ignoreElements,
  map,
  mergeMap,
  type Observable,
  of,
  take,
  takeWhile,
  concat,
  endWith,
  toArray,
} from 'rxjs';

/** A time in a store of calls, and what it is for. It is stored like a call that has not ended, and claimed like one. */
export interface Timer {
  /** Unique in its store: `sleep:…` or `schedule:…`. */
  readonly id: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** For the lists of calls. */
  readonly about: string;
  readonly data: Readonly<Record<string, string>>;
}

/** The name that lists of calls show as the agent. */
const agent = 'millrace/time';

const formatVersion = 1;

const firstStep = (id: string): string => `${id}/call`;
const lastStep = (id: string): string => `${id}/reply`;

/** The first record of a call, so that `calls$` can show a timer and `prune$` can remove it. */
const toText = ({ id, at, about, data }: Timer): string =>
  JSON.stringify({
    version: 1,
    keySeed: '',
    agent,
    input: [{ id, role: 'user', content: [{ type: 'text', text: about }] }],
    options: {},
    given: [],
    timer: { version: formatVersion, at, data },
  });

/** The timer in a record. Throws `invalidState` if it is damaged, or of another format version. */
const toTimer = (id: string, text: string): Timer => {
  const written = parsedJson(text);
  const timer = isRecord(written) ? written['timer'] : undefined;
  const { version = formatVersion, at, data } = isRecord(timer) ? timer : {};
  checkFormat(`The timer '${id}'`, version, formatVersion);
  if (typeof at !== 'number' || !Number.isFinite(at) || !isRecord(data)) throw damaged(id);
  const texts = Object.entries(data).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { id, at, about: '', data: Object.fromEntries(texts) };
};

const damaged = (id: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The record of the timer '${id}' is damaged. Remove it with store.driver.remove$(id).`,
  );

const recordOf = (id: string, name: string, text: string, ends = false) =>
  ({ kind: 'step', name, seq: 0, text, ends }) as const;

interface Written {
  readonly timer?: Timer;
  readonly isOver: boolean;
}

export const written$ = (driver: CallStoreDriver, id: string): Observable<Written> =>
  driver.read$(id, { kind: 'step' }).pipe(
    concatMap((records) => records),
    toArray(),
    map((records) => {
      const begun = records.find(({ name }) => name === firstStep(id));
      const isOver = records.some(({ name }) => name === lastStep(id));
      return begun === undefined ? { isOver } : { timer: toTimer(id, begun.text), isOver };
    }),
  );

/**
 * Stores a timer, unless its id is taken, and emits the stored one once it is durable. Errors with `store`, and with `conflict` while
 * another process stores it. Cold.
 */
export const set$ = (driver: CallStoreDriver, timer: Timer): Observable<Timer> => {
  const add$ = (claim: Claim): Observable<Timer> =>
    written$(driver, timer.id).pipe(
      concatMap(({ timer: known }) => {
        if (known !== undefined) return of(known);
        const record = recordOf(timer.id, firstStep(timer.id), toText(timer));
        return concat(claim.append$([record]).pipe(ignoreElements()), of(timer));
      }),
    );
  return written$(driver, timer.id).pipe(
    concatMap(({ timer: known }) =>
      known === undefined ? driver.claim$(timer.id).pipe(concatMap(add$), take(1)) : of(known),
    ),
  );
};

/** A timer that this process has claimed. */
export interface ClaimedTimer {
  readonly timer: Timer;
  /** Ends it for all processes, and completes once that is durable. Cold. */
  readonly end$: (reason: string) => Observable<never>;
}

/**
 * Claims a timer, runs work under the claim, and releases it at the end or on unsubscribe. Emits what the work emits, or `undefined` if the timer
 * is over. Errors with `conflict` if another process has it, also when the claim is lost. Cold.
 */
export const claimed$ = <T>(
  driver: CallStoreDriver,
  id: string,
  work$: (claimed: ClaimedTimer) => Observable<T>,
): Observable<T | undefined> =>
  written$(driver, id).pipe(
    // A claim of one that was removed would be a call without records.
    concatMap(({ timer, isOver }) =>
      timer === undefined || isOver ? of(undefined) : driver.claim$(id),
    ),
    mergeMap((claim) => {
      if (claim === undefined) return of(undefined, ended);
      return written$(driver, id).pipe(
        concatMap(({ timer, isOver }): Observable<T | undefined> => {
          if (timer === undefined || isOver) return of(undefined);
          const end$ = (reason: string): Observable<never> =>
            claim
              .append$([recordOf(id, lastStep(id), JSON.stringify({ reason }), true)])
              .pipe(ignoreElements());
          return work$({ timer, end$ });
        }),
        endWith(ended),
      );
    }),
    takeWhile((value): value is T | undefined => value !== ended),
  );

/** The claim lasts until it is unsubscribed, so it does not complete by itself. */
const ended = Symbol('ended');

/** An unfinished call in a list: a wanted timer, or the error of one that cannot be read. */
export interface ListedTimer {
  readonly id: string;
  readonly timer?: Timer;
  readonly error?: MillraceError;
}

/**
 * Emits the unfinished calls of a store, with those timers whose ids are wanted. With `since`, a time of the clocks that write, only
 * those that the list has before the first one that is older. Lazy, and cold.
 */
export const pending$ = (
  driver: CallStoreDriver,
  isWanted: (id: string) => boolean,
  since: number,
): Observable<ListedTimer> =>
  defer(() => driver.list$({ isUnfinished: true })).pipe(
    concatMap((calls) => calls),
    takeWhile(({ updatedAt }) => updatedAt >= since),
    map(listedTimer(isWanted)),
  );

const listedTimer =
  (isWanted: (id: string) => boolean) =>
  ({ callId: id, first, last }: StoredCall): ListedTimer => {
    if (!isWanted(id) || last?.name === lastStep(id)) return { id };
    try {
      if (first?.name !== firstStep(id)) throw damaged(id);
      if (isCall(first.text)) return { id };
      return { id, timer: toTimer(id, first.text) };
    } catch (error) {
      return { id, error: toMillraceError(error) };
    }
  };

/** A call of a user may have an id like that of a timer. */
const isCall = (text: string): boolean => {
  const written = parsedJson(text);
  return isRecord(written) && !('timer' in written);
};

export const toMillraceError = (error: unknown): MillraceError =>
  isMillraceError(error) ? error : new MillraceError('unknown', messageOf(error));

/** Emits whether a call has a record, and completes. Cold. */
export const isRecorded$ = (driver: CallStoreDriver, callId: string): Observable<boolean> =>
  driver.read$(callId).pipe(
    filter(({ length }) => length > 0),
    map(() => true),
    take(1),
    defaultIfEmpty(false),
  );

/** Continues with another source after an error that a test accepts. */
export const except =
  <Other>(
    accepts: (error: MillraceError) => boolean,
    other$: (error: MillraceError) => Observable<Other>,
  ) =>
  <T>(source$: Observable<T>): Observable<T | Other> =>
    source$.pipe(
      catchError((error: unknown) => {
        if (isMillraceError(error) && accepts(error)) return other$(error);
        throw error;
      }),
    );

export const isConflict = ({ code }: MillraceError): boolean => code === 'conflict';

/** A call with this id was made before. */
export const isTaken = (error: MillraceError): boolean => isConflict(error) && !error.retryable;
