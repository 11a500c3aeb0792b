import type { Observable } from 'rxjs';
import { MillraceError } from '../errors.js';
import { checkOptions, isText, type Rule, wholeNumber } from '../options.js';
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
   * Waits for a slot, subscribes to the work, and frees the slot when that completes, errors or is
   * left: in the same tick, before its end is heard. Cold: each subscription takes a slot of its
   * own. Who leaves while it waits leaves at once. Errors with `queueFull`, which is retryable,
   * where too many wait already.
   *
   * Who comes with the `key` of one that holds a slot begins at once and shares it; the slot is
   * free when the last of them is done. With something that a family of calls shares for a key, a call that is made
   * within another one never waits for it.
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
