import {
  asyncScheduler,
  catchError,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  concat,
  mergeMap,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  take,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { toMillraceError } from '../errors.js';
import { checkOptions, having, isFunction, numberFrom, type Rule } from '../options.js';
import { createQueue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import { calls$ } from './call-summary.js';
import type { CallStatus, CallSummary } from './call-summary.js';
import { checkStored, type StoreOfCalls } from './stored-call.js';

/** Which calls are removed. */
export interface PruneOptions {
  /** How long ago a call must have been written to last, in milliseconds. 0: any. */
  readonly olderThanMs: number;
  /** What must have become of it. Default: `['ended', 'failed', 'suspended']`; those that are broken off or unreadable go only where this says so, and those that run never. */
  readonly status?: readonly Exclude<CallStatus, 'running'>[];
  /** Keeps those for which it gives true. Default: none. */
  readonly keep?: (call: CallSummary) => boolean;
  /** What tells the time. Default: `asyncScheduler`. */
  readonly scheduler?: Pick<SchedulerLike, 'now'>;
}

const statuses: readonly string[] = ['ended', 'failed', 'suspended', 'brokenOff', 'unreadable'];

const pruneRules: Readonly<Record<keyof PruneOptions, Rule>> = {
  olderThanMs: numberFrom(0),
  status: [
    (value) => Array.isArray(value) && value.every((it: unknown) => statuses.some((s) => s === it)),
    `a list of ${statuses.map((status) => `'${status}'`).join(', ')}`,
  ],
  keep: isFunction,
  scheduler: having('now', 'a scheduler of RxJS'),
};

/** Removes old calls with all their records, and emits what each was; completes after the last. A call that is open stays. To delete one call: `store.driver.remove$(callId)`. Errors with `store`. Cold. */
export const prune$ = (store: StoreOfCalls, options: PruneOptions): Observable<CallSummary> => {
  checkStored('prune$()', store);
  checkOptions('prune$()', options, pruneRules, ['olderThanMs']);
  const {
    olderThanMs,
    status: wanted = ['ended', 'failed', 'suspended'],
    keep = () => false,
    scheduler = asyncScheduler,
  } = options;
  return defer(() => {
    const newest = scheduler.now() - olderThanMs;
    let found = 0;
    let removed = 0;
    return calls$(store).pipe(
      filter(({ status, updatedAt }) => wanted.some((it) => it === status) && updatedAt <= newest),
      filter((call) => !keep(call)),
      take(mostAtOnce),
      // Nothing is removed from a list that is being read.
      toArray(),
      mergeMap((calls) => {
        found = calls.length;
        removed = 0;
        return calls;
      }),
      queuedMap((call) => removed$(store, call), createQueue<CallSummary>),
      tap(() => {
        removed += 1;
      }),
      repeat({ delay: () => (found === mostAtOnce && removed > 0 ? of(true) : EMPTY) }),
    );
  });
};

/** Calls that are held at once: where there are more, the list is read again. */
const mostAtOnce = 5_000;

const removed$ = ({ driver }: StoreOfCalls, call: CallSummary): Observable<CallSummary> =>
  concat(defer(() => driver.remove$(call.callId)).pipe(ignoreElements()), of(call)).pipe(
    catchError((cause: unknown) => {
      const error = toMillraceError(
        cause,
        'store',
        `The call '${call.callId}' could not be removed`,
      );
      return error.code === 'conflict' ? EMPTY : throwError(() => error);
    }),
  );
