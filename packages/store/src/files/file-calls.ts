import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { fromPull, type MillraceError, openDemand } from '@millrace/core';
import { checkOptions, having, type Rule, wholeNumber } from '@millrace/core/adapter';
import {
  type CallStoreDriver,
  type RecordRange,
  sessionIn,
  type StoredRecord,
} from '@millrace/core/journal';
import {
  asyncScheduler,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  filter,
  finalize,
  from,
  map,
  merge,
  Observable,
  retry,
  type SchedulerLike,
  Subject,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import { type Attempt, leased$, type Seen } from '../leased.js';
import { checkId, storedName } from '../stored-name.js';
import { taken } from '../taken.js';
import { type AppendRecords, appendTo } from './append-records.js';
import { createAside } from './aside.js';
import { directoryGone, isThere, statIn } from './failure.js';
import { type FileLock, tryLock } from './file-lock.js';
import { type Part, partsOf } from './file-work.js';
import { heldCall, type HeldCall } from './held-call.js';
import { createKnownPlaces } from './known-places.js';
import { laterSegmentsOn } from './later-segments.js';
import { type Calls, listCalls, newestCalls, undated } from './list-calls.js';
import { openSegment } from './open-segment.js';
import { readCall } from './read-call.js';
import { segmentNumbers, segmentPath } from './segments.js';
import { createSessionMarks } from './session-marks.js';

/** What calls in files are told. */
export interface FileCallsOptions {
  /**
   * How long after its last sign of life a writer counts as gone, and another may go on with its call, in milliseconds, from 2,000: one that was only slow is refused
   * from then on. Default: 10,000.
   */
  readonly leaseMs?: number;
  /** What tells the time and waits. Default: `asyncScheduler`. The locks have timers of their own. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Keeps calls in a directory, each as lines of JSON in a directory of its own, which only this user can read. Several processes of one machine may use it at the same
 * time. A step is on the disk when its append completes. It errors with `store` where the file system fails, and with `invalidState` where a file is damaged. Nothing is
 * opened before it is used.
 */
export const fileCalls = (directory: string, options: FileCallsOptions = {}): CallStoreDriver => {
  checkOptions('fileCalls()', options, fileRules);
  return callsIn(partsOf(directory)(''), options);
};

/** As `fileCalls`, in a part of a store. */
export const callsIn = (
  { root, check, failing }: Part,
  { leaseMs = 10_000, scheduler = asyncScheduler }: FileCallsOptions,
): CallStoreDriver => {
  const aside = createAside(root, check);
  const laterSegments = laterSegmentsOn(scheduler);
  const places = createKnownPlaces();
  const written$ = new Subject<string>();
  const held = new Set<string>();
  const now = (): number => scheduler.now();
  const listed = (calls: Calls, portion = 50) =>
    listCalls(root, calls, laterSegments, leaseMs, portion);
  const marks = createSessionMarks(root, aside, () => listed(newestCalls(root)));
  /** The error of who has lost a call: to another writer, or because it was moved or deleted under it. */
  const lost = (callId: string, path: string): MillraceError =>
    existsSync(path) ? taken(callId) : directoryGone(root);

  /** Gets the lock of a call, makes of it what is held, and holds that until it is left. */
  const hold$ = <Held extends { release(): void }>(
    callId: string,
    path: string,
    begin: (lock: FileLock, onLost: () => void) => Promise<Held>,
  ): Observable<Held> =>
    defer(() => {
      if (held.has(path)) throw taken(callId);
      held.add(path);
      const lost$ = new Subject<never>();
      const onLost = (): void => lost$.error(lost(callId, path));
      const attempt = async (seen?: Seen): Promise<Attempt<Held>> => {
        const tried = await tryLock(`${path}.lock`, aside, { leaseMs, onLost }, seen);
        if (!('lease' in tried)) return tried;
        try {
          return { lease: await begin(tried.lease, onLost) };
        } catch (error) {
          tried.lease.release();
          throw error;
        }
      };
      const giveBack = (it: Held): void => it.release();
      const held$ = leased$({ attempt, giveBack, taken: () => taken(callId), leaseMs, scheduler });
      return merge(held$, lost$).pipe(finalize(() => held.delete(path)));
    });
  const begin = async (
    callId: string,
    path: string,
    lock: FileLock,
    onLost: () => void,
  ): Promise<HeldCall> => {
    const segment = await openSegment(path, callId, now());
    if (segment === undefined) throw lost(callId, path);
    const write = appendTo(path, segment, laterSegments, now);
    const append: AppendRecords = async (records) => {
      const begun = sessionIn(callId, records);
      if (begun !== undefined) await marks.add(begun, callId);
      return write(records);
    };
    return heldCall(callId, lock, segment, append, onLost, () => lost(callId, path));
  };
  const discard = async (callId: string, path: string): Promise<void> => {
    for await (const [call] of listed([{ name: storedName(callId) }])) {
      if (call !== undefined) await marks.forget(call);
    }
    await aside.discard(path);
  };
  /** What is done with the path of a call. */
  const at$ = <T>(callId: string, work$: (path: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(join(root, storedName(callId)));
    }).pipe(failing());
  return {
    claim$: (callId) =>
      at$(callId, (path) =>
        hold$(callId, path, (lock, onLost) => begin(callId, path, lock, onLost)).pipe(
          map(({ claim }) => ({
            append$: (records) =>
              claim.append$(records).pipe(
                tap(() => written$.next(path)),
                failing(),
              ),
          })),
        ),
      ),
    read$: (callId, range = {}) =>
      at$(callId, (path) =>
        fromPull(async function* () {
          const from = await places.find(path, range);
          for await (const { records, place } of readCall(path, from, laterSegments)) {
            await places.remember(path, place);
            yield records.filter(isIn(range)).map(undated);
          }
        }, openDemand),
      ).pipe(filter((records) => records.length > 0)),
    changes$: (callId) =>
      at$(callId, (path) =>
        merge(written$.pipe(filter((it) => it === path)), callChanges$(path, scheduler)),
      ),
    list$: (sessionId) =>
      fromPull(async function* () {
        // Of a session, few are asked for.
        yield* sessionId === undefined
          ? listed(newestCalls(root))
          : listed(await marks.of(sessionId), 5);
      }, openDemand).pipe(failing()),
    // Also one that is damaged: it needs its lock, and not to be read.
    remove$: (callId) =>
      at$(callId, (path) =>
        from(isThere(path)).pipe(
          filter(Boolean),
          switchMap(() => hold$(callId, path, (lock) => Promise.resolve(lock))),
          switchMap(() => discard(callId, path)),
          take(1),
        ),
      ),
  };
};

/** What options of files may be. */
export const fileRules: Readonly<Record<keyof FileCallsOptions, Rule>> = {
  leaseMs: wholeNumber(2_000),
  scheduler: having('schedule', 'a scheduler of RxJS, such as asyncScheduler'),
};

const isIn =
  ({ kind, after = 0, afterSeq = -1 }: RecordRange) =>
  (record: StoredRecord): boolean =>
    (kind ?? record.kind) === record.kind && record.position > after && record.seq > afterSeq;

/** The files of a call are looked at once a second: watching them is quicker, but not all file systems tell of changes, and none of those by other machines. */
const lookMs = 1_000;

/** Emits when there may be more in the directory of a call, at the first look, too. Never completes. */
const callChanges$ = (directory: string, scheduler: SchedulerLike): Observable<unknown> =>
  merge(
    // There may be no such directory yet.
    watched$(directory).pipe(retry({ delay: () => timer(lookMs, scheduler) })),
    timer(0, lookMs, scheduler).pipe(
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

/** The last segment and its length, which tell whether something was written. */
const sizeOf = async (directory: string): Promise<string> => {
  const last = (await segmentNumbers(directory)).at(-1);
  if (last === undefined) return '';
  return `${last} ${(await statIn(segmentPath(directory, last)))?.size}`;
};
