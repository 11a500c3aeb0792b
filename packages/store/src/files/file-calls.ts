import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { fromPull, isMillraceError, openDemand } from 'millrace';
import { checkOptions, having, type Rule, wholeNumber } from 'millrace/values';
import type { CallStoreDriver, RecordRange, RemovedCall, StoredRecord } from 'millrace/journal';
import {
  asyncScheduler,
  bufferCount,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  type SchedulerLike,
  Subject,
  switchMap,
  take,
  tap,
  distinctUntilChanged,
  exhaustMap,
  retry,
  timer,
} from 'rxjs';
import { checkId, storedName } from '../stored-name.js';
import { createCallIndex } from './call-index.js';
import { createCallClaims } from './claim-calls.js';
import { createCursorCache, type CursorCache } from './cursor-cache.js';
import { type Part, partsOf } from './file-work.js';
import { findCalls, listFrom } from './find-calls.js';
import { laterSegmentsOn, type LaterSegments } from './later-segments.js';
import { undated } from './list-calls.js';
import { readCall } from './read-call.js';
import { createCallRemoval } from './remove-calls.js';
import { createSessionIndex } from './session-index.js';
import { createStaging } from './staging.js';
import { statIfExists } from './file-system.js';
import { segmentNumbers, segmentPath } from './segments.js';

/** Options of `fileCalls`. */
export interface FileCallsOptions {
  /**
   * Time after its last heartbeat at which a writer loses its call to the next one, in milliseconds, minimum 2,000.
   * Later writes of a writer that was only slow are rejected. Default: 10,000.
   */
  readonly leaseMs?: number | undefined;
  /** The clock and the timers. Default: `asyncScheduler`. File locks use timers of their own. */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Stores calls as JSON Lines, each call in its own subdirectory that only this user can read. Several processes on
 * one machine can share the directory. A step is on disk when its append completes. Errors with `store` if the file
 * system fails, and with `invalidState` if a file is damaged. Opens nothing before the first use.
 */
export const fileCalls = (directory: string, options: FileCallsOptions = {}): CallStoreDriver => {
  checkOptions('fileCalls()', options, fileRules);
  return callsIn(partsOf(directory)(''), options);
};

export const callsIn = (
  part: Part,
  { leaseMs = 10_000, scheduler = asyncScheduler }: FileCallsOptions,
): CallStoreDriver => {
  const { root, check, withStoreErrors } = part;
  const staging = createStaging(root, check);
  const laterSegments = laterSegmentsOn(scheduler);
  const cursors = createCursorCache();
  const reading = { staging, laterSegments, leaseMs };
  const index = createCallIndex(root, reading);
  const list = listFrom(root, index, reading);
  const sessionIndex = createSessionIndex(root, staging, () => list(index.calls(Infinity)));
  const claims = createCallClaims({ root, staging, index, sessionIndex, leaseMs, scheduler });
  const removal = createCallRemoval(root, { ...reading, index, sessionIndex });
  const written$ = new Subject<string>();
  const at$ = atPathIn(part);
  const remove$ = (callId: string): Observable<RemovedCall> =>
    // Needs only the lock, so it removes damaged calls too.
    at$(callId, (path) => {
      if (!existsSync(path)) return EMPTY;
      return claims.lock$(callId).pipe(
        switchMap(() => removal.removeLocked(callId)),
        take(1),
      );
    });
  return {
    claim$: (callId) =>
      at$(callId, (path) =>
        claims.claim$(callId).pipe(
          map(({ claim }) => ({
            append$: (records) =>
              claim.append$(records).pipe(
                tap(() => written$.next(path)),
                withStoreErrors(),
              ),
          })),
        ),
      ),
    read$: (callId, range = {}) =>
      at$(callId, (path) =>
        records$(path, range, () => claims.isEmpty(callId), cursors, laterSegments),
      ),
    changes$: (callId) =>
      at$(callId, (path) =>
        merge(written$.pipe(filter((it) => it === path)), callChanges$(path, scheduler)),
      ),
    list$: (query = {}) =>
      fromPull(() => findCalls({ root, index, sessionIndex, list }, query), openDemand).pipe(
        withStoreErrors(),
      ),
    remove$,
    removeAll$: (callIds) =>
      from(callIds).pipe(
        bufferCount(removedAtOnce),
        concatMap((portion) => defer(() => removal.removeClosed(portion))),
        concatMap(({ removed, open }) => concat(of(removed), removeEach$(open, remove$))),
        withStoreErrors(),
      ),
  };
};

/** Runs work on the directory of a call. */
const atPathIn =
  ({ root, withStoreErrors }: Part) =>
  <T>(callId: string, work$: (path: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(join(root, storedName(callId)));
    }).pipe(withStoreErrors());

const removedAtOnce = 500;

/** Calls whose leases a removal waits for at the same time. */
const waitedFor = 32;

/** Waits for the leases of holders that cannot be checked. Calls that are in use stay. */
const removeEach$ = (
  callIds: readonly string[],
  remove$: (callId: string) => Observable<RemovedCall>,
): Observable<readonly RemovedCall[]> =>
  from(callIds).pipe(
    mergeMap(
      (callId) =>
        remove$(callId).pipe(
          map((call) => [call]),
          catchError((error: unknown) => {
            if (isMillraceError(error) && error.code === 'conflict') return EMPTY;
            throw error;
          }),
        ),
      waitedFor,
    ),
  );

export const fileRules: Readonly<Record<keyof FileCallsOptions, Rule>> = {
  leaseMs: wholeNumber(2_000),
  scheduler: having('schedule', 'an RxJS scheduler, such as asyncScheduler'),
};

/** Reads a range of the records of a call, from the end of the last reading, if that is before them. */
const records$ = (
  path: string,
  range: RecordRange,
  isEmpty: () => boolean,
  cursors: CursorCache,
  laterSegments: LaterSegments,
): Observable<readonly StoredRecord[]> =>
  fromPull(async function* () {
    if (isEmpty()) return;
    const start = await cursors.find(path, range);
    for await (const { records, cursor } of readCall(path, start, laterSegments)) {
      await cursors.remember(path, cursor);
      yield records.filter(isIn(range)).map(undated);
    }
  }, openDemand).pipe(filter((records) => records.length > 0));

const isIn =
  ({ kind, after = 0, afterSeq = -1 }: RecordRange) =>
  (record: StoredRecord): boolean =>
    (kind ?? record.kind) === record.kind && record.position > after && record.seq > afterSeq;

/** Polls in addition to watching: not every file system reports changes, and none reports those of other machines. */
const pollMs = 1_000;

/** Emits on subscribe and whenever the directory of a call may have changed. Never completes. */
const callChanges$ = (directory: string, scheduler: SchedulerLike): Observable<unknown> =>
  merge(
    // The directory may not exist yet.
    watched$(directory).pipe(retry({ delay: () => timer(pollMs, scheduler) })),
    timer(0, pollMs, scheduler).pipe(
      exhaustMap(() => from(sizeOf(directory)).pipe(catchError(() => EMPTY))),
      distinctUntilChanged(),
    ),
  );

const watched$ = (directory: string): Observable<unknown> =>
  new Observable((subscriber) => {
    const watcher = watch(directory, { persistent: false }, () => subscriber.next(undefined));
    watcher.on('error', (error) => subscriber.error(error));
    return () => watcher.close();
  });

/** The number and size of the last segment: they change with every write. */
const sizeOf = async (directory: string): Promise<string> => {
  const last = (await segmentNumbers(directory)).at(-1);
  if (last === undefined) return '';
  return `${last} ${(await statIfExists(segmentPath(directory, last)))?.size}`;
};
