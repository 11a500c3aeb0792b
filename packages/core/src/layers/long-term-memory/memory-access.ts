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

/** How a memory is asked, which is foreign code. */
export interface MemoryAccess {
  readonly memory: LongTermMemory;
  readonly scope: MemoryScope;
  readonly scheduler: SchedulerLike;
  /** How long it may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** Recalls, and lets nothing through that is no entry, or another's. Errors where the memory does, or is late. */
export const recalled$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  query: Required<MemoryQuery>,
): Observable<readonly RecalledMemory[]> =>
  defer(() => memory.recall$(scope, query)).pipe(
    oneInTime(timeoutMs, scheduler),
    map((found) => {
      const entries = entriesIn(found);
      const own = entries.filter((entry) => isVisible(entry, scope));
      if (own.length < entries.length) {
        query.report('The memory gave entries of somebody else, which were left out.');
      }
      return own.slice(0, query.limit);
    }),
    defaultIfEmpty([]),
  );

/** Records, and emits the entries as they are kept. Errors where the memory does, or is late. */
export const recorded$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  memories: readonly NewMemory[],
): Observable<readonly MemoryEntry[]> =>
  defer(() => memory.record$(scope, memories)).pipe(
    oneInTime(timeoutMs, scheduler),
    map(entriesIn),
    defaultIfEmpty([]),
  );

/** Forgets, and emits how many. Errors where the memory does, or is late. */
export const forgotten$ = (
  { memory, scope, scheduler, timeoutMs }: MemoryAccess,
  ids: readonly string[],
): Observable<number> =>
  defer(() => memory.forget$(scope, ids)).pipe(
    oneInTime(timeoutMs, scheduler),
    map(countIn),
    defaultIfEmpty(0),
  );

const oneInTime =
  <T>(ms: number, scheduler: SchedulerLike): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(contained(), take(1), deadline(ms, scheduler, 'The memory', 'timeoutMs'));

const isVisible = ({ scope: of }: MemoryEntry, { userId, sessionId }: MemoryScope): boolean =>
  of.userId === userId && (of.sessionId === undefined || of.sessionId === sessionId);

const countIn = (count: unknown): number => {
  if (typeof count === 'number') return count;
  throw new TypeError('a memory tells how many entries it has forgotten');
};

const entriesIn = <Entry extends MemoryEntry>(found: readonly Entry[]): readonly Entry[] => {
  const given: unknown = found;
  if (Array.isArray(given) && given.every(isEntry)) return found;
  throw new TypeError('a memory gives a list of entries');
};

const isEntry = (value: unknown): boolean =>
  isRecord(value) &&
  ['id', 'text', 'kind'].every((name) => typeof value[name] === 'string') &&
  typeof value['createdAt'] === 'number' &&
  isScope(value['scope']);
