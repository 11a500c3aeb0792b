import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { defaultIfEmpty, defer, map, take } from 'rxjs';
import { contained } from '../../flow/contained.js';
import { deadline } from '../../flow/deadline.js';
import { isRecord } from '../../values/json.js';
import {
  isScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryQuery,
  type MemoryScope,
  type NewMemory,
  type RecalledMemory,
} from './long-term-memory.js';

export interface MemoryAccess {
  readonly memory: LongTermMemory;
  readonly scope: MemoryScope;
  readonly scheduler: SchedulerLike;
  readonly timeoutMs: number;
}

/** Recalls entries; drops invalid ones and those of other users. Errors if the memory errors or times out. */
export const recallIn$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  query: Required<MemoryQuery>,
): Observable<readonly RecalledMemory[]> =>
  defer(() => memory.recall$(scope, query)).pipe(
    firstInTime(timeoutMs, scheduler),
    map((found) => {
      const entries = entriesIn(found);
      const own = entries.filter((entry) => isVisible(entry, scope));
      if (own.length < entries.length) {
        query.report('The memory returned entries of another user or session. They were dropped.');
      }
      return own.slice(0, query.limit);
    }),
    defaultIfEmpty([]),
  );

export const recordIn$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  memories: readonly NewMemory[],
): Observable<readonly MemoryEntry[]> =>
  defer(() => memory.record$(scope, memories)).pipe(
    firstInTime(timeoutMs, scheduler),
    map(entriesIn),
    defaultIfEmpty([]),
  );

export const forgetIn$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  ids: readonly string[],
): Observable<number> =>
  defer(() => memory.forget$(scope, ids)).pipe(
    firstInTime(timeoutMs, scheduler),
    map(countIn),
    defaultIfEmpty(0),
  );

export const firstInTime =
  <T>(ms: number, scheduler: SchedulerLike, who = 'The memory'): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(contained(), take(1), deadline(ms, scheduler, who, 'timeoutMs'));

const isVisible = ({ scope: of }: MemoryEntry, { userId, sessionId }: MemoryScope): boolean =>
  of.userId === userId && (of.sessionId === undefined || of.sessionId === sessionId);

const countIn = (count: unknown): number => {
  if (typeof count === 'number') return count;
  throw new TypeError('forget$ must emit the number of deleted entries');
};

const entriesIn = <Entry extends MemoryEntry>(found: readonly Entry[]): readonly Entry[] => {
  const given: unknown = found;
  if (Array.isArray(given) && given.every(isEntry)) return found;
  throw new TypeError('a memory must emit a list of entries');
};

const isEntry = (value: unknown): boolean =>
  isRecord(value) &&
  ['id', 'text', 'kind'].every((name) => typeof value[name] === 'string') &&
  typeof value['createdAt'] === 'number' &&
  isScope(value['scope']);
