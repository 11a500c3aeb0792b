import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { fromPull, isMillraceError, type MillraceError, openDemand } from '@millrace/core';
import { checkOptions, having, type Rule, wholeNumber } from '@millrace/core/values';
import {
  type CallQuery,
  type CallStoreDriver,
  type NewRecord,
  type RecordRange,
  type RemovedCall,
  sessionIn,
  type StoredRecord,
} from '@millrace/core/journal';
import {
  asyncScheduler,
  bufferCount,
  catchError,
  concat,
  concatMap,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  filter,
  finalize,
  from,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  retry,
  type SchedulerLike,
  Subject,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import { type LeaseAttempt, acquireLease$, type ObservedHolder } from '../acquire-lease.js';
import { checkId, storedName } from '../stored-name.js';
import { callInUse } from '../closing.js';
import { recordWriter } from './append-records.js';
import { createCallIndex } from './call-index.js';
import { createStaging } from './staging.js';
import { directoryMissing, statIfExists } from './file-system.js';
import { type FileLock, tryLock } from './file-lock.js';
import { type Part, partsOf } from './file-work.js';
import { heldCall, type HeldCall } from './held-call.js';
import { createCursorCache } from './cursor-cache.js';
import { laterSegmentsOn } from './later-segments.js';
import {
  type Calls,
  type FoundCall,
  listCalls,
  type ListOptions,
  type NamedCall,
  undated,
} from './list-calls.js';
import { openSegment } from './open-segment.js';
import { readCall } from './read-call.js';
import { endedAt } from './read-ends.js';
import { createCallRemoval } from './remove-calls.js';
import { segmentNumbers, segmentPath } from './segments.js';
import { createSessionIndex } from './session-index.js';

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
  { root, check, withStoreErrors }: Part,
  { leaseMs = 10_000, scheduler = asyncScheduler }: FileCallsOptions,
): CallStoreDriver => {
  const staging = createStaging(root, check);
  const laterSegments = laterSegmentsOn(scheduler);
  const cursors = createCursorCache();
  const written$ = new Subject<string>();
  const claimed = new Set<string>();
  const reading = { staging, laterSegments, leaseMs };
  const index = createCallIndex(root, reading);
  const listed = (calls: Calls, more: Partial<ListOptions> = {}) =>
    listCalls(root, calls, {
      ...{ laterSegments, leaseMs, pages: [20, 50], matches: () => true },
      isShown: index.isShown,
      ...more,
    });
  const sessionIndex = createSessionIndex(root, staging, () => listed(index.calls(Infinity)));
  const removal = createCallRemoval(root, { ...reading, index, sessionIndex });
  /** A call is lost to another writer, or because its directory was moved or deleted. */
  const lost = (callId: string, path: string): MillraceError =>
    existsSync(path) ? callInUse(callId) : directoryMissing(root);

  /** Acquires the lock of a call and emits what `begin` creates; releases it on unsubscribe. */
  const hold$ = <Held extends Holder>(
    callId: string,
    path: string,
    begin: (lock: FileLock, onLost: () => void) => Promise<Held>,
  ): Observable<Held> =>
    defer(() => {
      if (claimed.has(path)) throw callInUse(callId);
      claimed.add(path);
      const lost$ = new Subject<never>();
      const onLost = (): void => lost$.error(lost(callId, path));
      let held: Holder | undefined;
      const attempt = async (seen?: ObservedHolder): Promise<LeaseAttempt<Held>> => {
        await index.prepare();
        const loseLock = (): void => (held?.lose ?? onLost)();
        const tried = await tryLock(`${path}.lock`, staging, { leaseMs, onLost: loseLock }, seen);
        if (!('lease' in tried)) return tried;
        try {
          const lease = await begin(tried.lease, onLost);
          held = lease;
          return { lease };
        } catch (error) {
          tried.lease.release();
          throw error;
        }
      };
      const release = (it: Held): void => it.release();
      const held$ = acquireLease$({
        attempt,
        release,
        unavailable: () => callInUse(callId),
        leaseMs,
        scheduler,
      });
      return merge(held$, lost$).pipe(finalize(() => claimed.delete(path)));
    });
  const begin = async (
    callId: string,
    path: string,
    lock: FileLock,
    onLost: () => void,
  ): Promise<HeldCall> => {
    const segment = await openSegment(path, callId, scheduler.now());
    if (segment === undefined) throw lost(callId, path);
    const isNew = segment.cursor.position === 0;
    const end = endedAt(callId, segment.last);
    const entry = await index.open({ name: storedName(callId), isNew, endedAt: end });
    const before = async (records: readonly NewRecord[], at: number | undefined) => {
      const sessionId = sessionIn(callId, records);
      const added = sessionId === undefined ? sessionId : sessionIndex.add(sessionId, callId);
      const [directories] = await Promise.all([entry.before(at), added]);
      return directories;
    };
    const remove = (): void => {
      segment.remove();
      entry.discard();
    };
    return heldCall({
      ...{ callId, lock, onLost, lost: () => lost(callId, path) },
      writer: recordWriter(path, segment, { scheduler, entry: { before, after: entry.after } }),
      remove: isNew ? remove : undefined,
    });
  };
  const at$ = <T>(callId: string, work$: (path: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(join(root, storedName(callId)));
    }).pipe(withStoreErrors());
  const remove$ = (callId: string): Observable<RemovedCall> =>
    // Needs only the lock, so it removes damaged calls too.
    at$(callId, (path) =>
      existsSync(path)
        ? hold$(callId, path, (lock) => Promise.resolve(lock)).pipe(
            switchMap(() => removal.removeLocked(callId)),
            take(1),
          )
        : EMPTY,
    );
  /** Waits for the leases of holders that cannot be checked. */
  const removeSlowly$ = (callIds: readonly string[]): Observable<readonly RemovedCall[]> =>
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
        slowlyRemoved,
      ),
    );
  async function* found({ sessionId, isUnfinished, writtenUntil = Infinity }: CallQuery) {
    const matches = ({ call, endedAt: end }: FoundCall): boolean =>
      call.updatedAt <= writtenUntil && !(isUnfinished === true && end !== undefined);
    if (sessionId !== undefined) {
      const all = await sessionIndex.of(sessionId);
      const names = isUnfinished && new Set((await index.unfinished()).map(({ name }) => name));
      const entries = names ? all.filter(({ name }) => names.has(name)) : all;
      // A session usually needs only its latest calls.
      yield* listed(entries, { pages: [5], matches, isShown: isShownIn(sessionId) });
    } else if (isUnfinished === true) {
      yield* listed(await index.unfinished(), { matches });
    } else {
      yield* listed(index.calls(writtenUntil), { matches });
    }
  }
  const isShownIn =
    (sessionId: string) =>
    async ({ name }: NamedCall, call: FoundCall | undefined): Promise<boolean> => {
      if (call === undefined && !existsSync(join(root, name))) {
        const forget = () => sessionIndex.forget(sessionId, new Set([name]));
        await index.whileClosed(name, forget).catch(() => undefined);
      }
      return call !== undefined;
    };
  return {
    claim$: (callId) =>
      at$(callId, (path) =>
        hold$(callId, path, (lock, onLost) => begin(callId, path, lock, onLost)).pipe(
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
        fromPull(async function* () {
          const from = await cursors.find(path, range);
          for await (const { records, cursor } of readCall(path, from, laterSegments)) {
            await cursors.remember(path, cursor);
            yield records.filter(isIn(range)).map(undated);
          }
        }, openDemand),
      ).pipe(filter((records) => records.length > 0)),
    changes$: (callId) =>
      at$(callId, (path) =>
        merge(written$.pipe(filter((it) => it === path)), callChanges$(path, scheduler)),
      ),
    list$: (query = {}) => fromPull(() => found(query), openDemand).pipe(withStoreErrors()),
    remove$,
    removeAll$: (callIds) =>
      from(callIds).pipe(
        bufferCount(removedAtOnce),
        concatMap((portion) => defer(() => removal.removeClosed(portion))),
        concatMap(({ removed, open }) => concat(of(removed), removeSlowly$(open))),
        withStoreErrors(),
      ),
  };
};

interface Holder {
  release(): void;
  /** Called instead of `onLost`, if present. */
  lose?(): void;
}

const removedAtOnce = 500;

/** Calls whose leases a removal waits for at the same time. */
const slowlyRemoved = 32;

export const fileRules: Readonly<Record<keyof FileCallsOptions, Rule>> = {
  leaseMs: wholeNumber(2_000),
  scheduler: having('schedule', 'an RxJS scheduler, such as asyncScheduler'),
};

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
