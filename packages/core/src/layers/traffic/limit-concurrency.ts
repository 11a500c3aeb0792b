import type { Observable } from 'rxjs';
import { isOpen } from '../../seams/call.js';
import { MillraceError } from '../../values/errors.js';
import type { Layer } from '../../seams/layer.js';
import type { Model } from '../../models/model.js';
import { around, checkModel, inTime } from '../../models/timeouts.js';
import { checkOptions, having, isText, type Rule, wholeNumber } from '../../values/options.js';
import { createGate, type Guest } from './gate.js';

/** How much may run at once, and how much may wait for it. */
export interface SemaphoreOptions {
  /** Slots: how many may be held at once. */
  readonly max: number;
  /** How many may wait for a slot. Default: 100. */
  readonly maxQueue?: number;
  /** What waits, in the plural, for the message of `queueFull`. Default: 'others'. */
  readonly what?: string;
}

/** A number of slots, which work takes while it runs. Who waits is served in the order in which they came. */
export interface Semaphore {
  readonly max: number;
  /** How many slots are held now. */
  readonly held: number;
  /** How many wait for one now. */
  readonly waiting: number;
  /**
   * Waits for a slot, subscribes to the work, and frees the slot in the same tick as the work completes, errors or is unsubscribed. Cold: each subscription takes
   * a slot of its own. Unsubscribing leaves the queue. Errors with `queueFull` (retryable) if too many wait. With the `key` of a current holder, the work starts immediately
   * and shares that slot, which is free once the last of them has ended.
   */
  hold$<T>(
    work: () => Observable<T>,
    key?: unknown,
    /** Hears that it has to wait, and behind how many others. */
    waits?: (ahead: number) => void,
  ): Observable<T>;
}

/** Makes a semaphore: `semaphore.hold$(() => agent.call$('…'))` is a call that waits for its turn. Its own times, such as `callMs`, begin with its turn. */
export const createSemaphore = (options: SemaphoreOptions): Semaphore => {
  checkOptions('createSemaphore()', options, rules, ['max']);
  const { max, maxQueue = 100, what = 'others' } = options;
  const holders = new Map<unknown, number>();
  let held = 0;
  const gate = createGate(maxQueue, () => full(max, maxQueue, what));
  const guestOf = (key: unknown, waits: Guest['waits']): Guest => ({
    waits,
    admit: (isFirst) => {
      const sharing = key === undefined ? 0 : (holders.get(key) ?? 0);
      if (sharing === 0 && (!isFirst || held >= max)) return false;
      if (key !== undefined) holders.set(key, sharing + 1);
      if (sharing === 0) held += 1;
      return true;
    },
    leave: () => {
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
      return gate.waiting;
    },
    hold$: (work, key, waits) => gate.enter$(guestOf(key, waits), work),
  };
};

const full = (max: number, maxQueue: number, what: string): MillraceError =>
  new MillraceError(
    'queueFull',
    `${max} run at once, and ${maxQueue} ${what} wait already ('maxQueue'). Try again when some have ended.`,
    { retryable: true },
  );

const rules: Readonly<Record<keyof SemaphoreOptions, Rule>> = {
  max: wholeNumber(1),
  maxQueue: wholeNumber(0),
  what: isText,
};

/** How much may wait for a limit. */
export interface LimitConcurrencyOptions {
  /** Requests that may wait. One more errors with `queueFull`, which is retryable. Default: 100. */
  readonly maxQueue?: number;
}

/** Limits a model: all that it is applied to share one limit. */
export interface ConcurrencyLimit {
  (model: Model): Model;
  /** Who holds the slots, and how many wait. It can limit other work, too. */
  readonly semaphore: Semaphore;
}

/**
 * Limits concurrent requests across all models and agents that share it: `const limited = limitConcurrency(20)`, then `model: limited(openai('…'))`. Further requests wait in order.
 * Waiting emits a `queued` event and counts towards `callMs` and `iterationMs`. `retry(limited(model))` frees the slot between attempts, `limited(retry(model))` keeps it;
 * `fallback(limited(a), b)` asks `b` if the queue is full. Do not share its semaphore with `limitCalls`: calls would wait for themselves.
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
    return around(timed, (request, context) =>
      semaphore.hold$(
        () => timed.stream$(request, context),
        undefined,
        (ahead) => context.report({ type: 'queued', why: 'concurrency', ahead }),
      ),
    );
  };
  return Object.assign(limit, { semaphore });
};

/**
 * Limits concurrent calls across all agents that share the semaphore. A `queued` event reports the wait, which counts towards `callMs`; aborting or interrupting the call leaves the queue. A full queue
 * errors with `queueFull`. Calls made by tools share the slot of their parent. Input that a guard rejects does not wait. A tool that calls a busy session whose call waits for the same slot waits until a time-out.
 */
export const limitCalls = (semaphore: Semaphore): Layer => {
  checkOptions('limitCalls()', { semaphore }, { semaphore: isSemaphore }, ['semaphore']);
  return {
    name: 'limitCalls',
    priority: 57,
    call:
      ({ lineage, hooks, interruption }) =>
      (next) =>
      (call) =>
        // What is not to run needs no place.
        isOpen(call) && interruption.current === undefined
          ? semaphore.hold$(
              () => next(call),
              lineage[0],
              (ahead) => hooks.report(0, { type: 'queued', why: 'calls', ahead }),
            )
          : next(call),
  };
};

const isSemaphore = having('hold$', 'a semaphore, such as createSemaphore() makes');
