import {
  AsyncSubject,
  concat,
  concatMap,
  filter,
  NEVER,
  type Observable,
  of,
  race,
  take,
} from 'rxjs';
import { isOpen } from '../../seams/call.js';
import { MillraceError } from '../../values/errors.js';
import type { Layer } from '../../seams/layer.js';
import type { Model } from '../../models/model.js';
import { aroundModel } from '../../models/around-model.js';
import { checkModel, inTime } from '../../models/timeouts.js';
import { checkOptions, having, isText, type Rule, wholeNumber } from '../../values/options.js';
import { createAdmissionGate, reportingWait, type Waiter } from './admission-gate.js';
import { lineageOf } from '../../seams/call-scope.js';
import { waited$ } from '../../step.js';
import { layerPlaces } from '../../seams/layer-places.js';

export interface SemaphoreOptions {
  /** Maximum number of slots held at the same time. */
  readonly max: number;
  /** Maximum number of waiters. Default: 100. */
  readonly maxQueue?: number | undefined;
  /** Plural noun for the waiting work, used in the `queueFull` message. Default: 'others'. */
  readonly what?: string | undefined;
}

/** Slots that work holds while it runs. Waiters are served in order of arrival. */
export interface Semaphore {
  readonly max: number;
  readonly held: number;
  readonly waiting: number;
  /**
   * Waits for a slot, subscribes to the work, and frees the slot in the same tick as the work completes, errors or is
   * unsubscribed. Cold: each subscription takes its own slot. Unsubscribing leaves the queue. Errors with `queueFull`
   * (retryable) if too many wait. With the `key` of a current holder, the work starts immediately and shares its slot
   * until the last of them ends.
   */
  hold$<T>(
    work: () => Observable<T>,
    key?: unknown,
    /** Called if it is queued, with the number of those ahead of it. Returns what to call when it starts. */
    waits?: (ahead: number) => (() => void) | undefined,
  ): Observable<T>;
}

/** Creates a semaphore: `semaphore.hold$(() => agent.call$('…'))` queues a call. Its time limits start once it runs. */
export const createSemaphore = (options: SemaphoreOptions): Semaphore => {
  checkOptions('createSemaphore()', options, rules, ['max']);
  const { max, maxQueue = 100, what = 'others' } = options;
  const holders = new Map<unknown, number>();
  let held = 0;
  const admissionGate = createAdmissionGate(maxQueue, () => queueFull(max, maxQueue, what));
  const waiterFor = (key: unknown, waits: Waiter['onQueued']): Waiter => ({
    onQueued: waits,
    tryAcquire: (isFirst) => {
      const sharedBy = key === undefined ? 0 : (holders.get(key) ?? 0);
      if (sharedBy === 0 && (!isFirst || held >= max)) return false;
      if (key !== undefined) holders.set(key, sharedBy + 1);
      if (sharedBy === 0) held += 1;
      return true;
    },
    release: () => {
      const others = key === undefined ? 0 : (holders.get(key) ?? 1) - 1;
      if (key !== undefined && others > 0) {
        holders.set(key, others);
        return;
      }
      if (key !== undefined) holders.delete(key);
      held -= 1;
    },
  });
  return {
    max,
    get held() {
      return held;
    },
    get waiting() {
      return admissionGate.waiting;
    },
    hold$: (work, key, waits) => admissionGate.enter$(waiterFor(key, waits), work),
  };
};

const queueFull = (max: number, maxQueue: number, what: string): MillraceError =>
  new MillraceError(
    'queueFull',
    `${max} are running, and ${maxQueue} ${what} are already waiting ('maxQueue'). Try again when some have ended.`,
    { retryable: true },
  );

const rules: Readonly<Record<keyof SemaphoreOptions, Rule>> = {
  max: wholeNumber(1),
  maxQueue: wholeNumber(0),
  what: isText,
};

export interface LimitConcurrencyOptions {
  /** Maximum number of queued requests. One more errors with `queueFull`, which is retryable. Default: 100. */
  readonly maxQueue?: number | undefined;
}

/** Limits models. All models that it wraps share one limit. */
export interface ConcurrencyLimit {
  (model: Model): Model;
  /** The slots and the queue. It can limit other work, too. */
  readonly semaphore: Semaphore;
}

/**
 * Limits concurrent requests across all models and agents that share it: `const limited = limitConcurrency(20)`, then
 * `model: limited(openai('…'))`. Further requests wait in order, with the events `queued` and `admitted`; the wait counts towards
 * `callMs` and `iterationMs`. `retry(limited(model))` frees the slot between attempts, `limited(retry(model))` keeps
 * it; `fallback(limited(a), b)` uses `b` if the queue is full. Calls that share its semaphore (`limitCalls`) deadlock.
 */
export const limitConcurrency = (
  max: number,
  options: LimitConcurrencyOptions = {},
): ConcurrencyLimit => {
  checkOptions('limitConcurrency()', options, { maxQueue: wholeNumber(0) });
  checkOptions('limitConcurrency()', { max }, { max: wholeNumber(1) }, ['max']);
  const semaphore = createSemaphore({ ...options, max, what: 'requests' });
  const limit = (model: Model): Model => {
    checkModel('limitConcurrency()', model);
    const timed = inTime(model);
    return aroundModel(timed, (request, context) =>
      semaphore.hold$(
        () => timed.stream$(request, context),
        undefined,
        reportingWait('concurrency', context),
      ),
    );
  };
  return Object.assign(limit, { semaphore });
};

/**
 * Limits concurrent calls across all agents that share the semaphore. The events `queued` and `admitted` report the wait, which counts
 * towards `callMs`; aborting or interrupting the call leaves the queue. A full queue errors with `queueFull`. Calls
 * made by tools share the slot of their parent. Input that a guard rejects does not wait. A tool that calls a session
 * whose running call waits for the same slot waits until it times out.
 */
export const limitCalls = (semaphore: Semaphore): Layer => {
  checkOptions('limitCalls()', { semaphore }, { semaphore: isSemaphore }, ['semaphore']);
  return {
    name: 'limitCalls',
    priority: layerPlaces.limitCalls,
    call: (context) => (next) => (call) => {
      const { info, hooks, interruption, scheduler } = context;
      // A call that will not run needs no slot.
      if (!isOpen(call) || interruption.current !== undefined) return next(call);
      const admitted$ = new AsyncSubject<true>();
      const held$ = semaphore.hold$(
        () => {
          admitted$.next(true);
          admitted$.complete();
          return next(call);
        },
        lineageOf(info)[0],
        reportingWait('calls', { scheduler, report: (event) => hooks.report(0, event) }),
      );
      const wait$ = waited$(context, 'limitCalls', admitted$);
      // An interrupt ends the wait, and leaves the queue. A layer that cuts the wait for another reason does not.
      const cut$ = wait$.pipe(filter((isAdmitted) => isAdmitted === undefined));
      const left$ = concat(cut$.pipe(concatMap(() => interruption.asked$)), NEVER);
      return race(left$, held$).pipe(
        take(1),
        concatMap((reply) => ('role' in reply ? of(reply) : next(call))),
      );
    },
  };
};

const isSemaphore = having('hold$', 'a semaphore, such as createSemaphore() makes');
