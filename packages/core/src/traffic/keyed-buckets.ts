import { MillraceError } from '../errors.js';
import { checkOptions, numberFrom, wholeNumber } from '../options.js';
import { createLine } from './line.js';
import {
  type BucketState,
  bucketRules,
  tokenBucket,
  type TokenBucketOptions,
} from './token-bucket.js';

/** How much each key may take, and how many are remembered. */
export interface KeyedBucketsOptions extends TokenBucketOptions {
  /** Buckets that are remembered: the ones used last. Default: 10,000. */
  readonly maxKeys?: number;
}

/** A token bucket for each user, tenant or address. */
export interface KeyedBuckets {
  /** How many are remembered. */
  readonly size: number;
  /**
   * Takes one token of a key at a time in milliseconds, such as `scheduler.now()`, or says how long
   * it is until there is one. Throws `tooLarge` for a key of more than 1,024 characters.
   */
  tryTake(
    key: string,
    now: number,
  ): { readonly ok: true } | { readonly ok: false; readonly waitMs: number };
}

interface Entry {
  readonly key: string;
  readonly state: BucketState;
  readonly leaveLine: () => void;
}

const maxKeyLength = 1_024;

/**
 * Makes token buckets by key. Those that are full again are forgotten, nothing being lost; where
 * there are too many others, the one that was not used for the longest time begins anew.
 */
export const keyedBuckets = (options: KeyedBucketsOptions): KeyedBuckets => {
  const rules = { ...bucketRules, capacity: numberFrom(1), maxKeys: wholeNumber(1) };
  checkOptions('keyedBuckets()', options, rules, ['capacity', 'refillPerMinute']);
  const { maxKeys = 10_000, capacity, refillPerMinute } = options;
  const bucket = tokenBucket({ capacity, refillPerMinute });
  const entries = new Map<string, Entry>();
  const byAge = createLine<Entry>();

  const forget = ({ key, leaveLine }: Entry): void => {
    entries.delete(key);
    leaveLine();
  };
  const remember = (key: string, state: BucketState): void => {
    const entry: Entry = { key, state, leaveLine: () => leaveLine() };
    const leaveLine = byAge.add(entry);
    entries.set(key, entry);
  };
  // Two for each one that comes: the buckets of a rush are gone again after as many calls.
  const forgetOldest = (now: number): void => {
    for (let times = 0; times < 2; times += 1) {
      const { first } = byAge;
      if (first === undefined) return;
      if (entries.size > maxKeys || bucket.isFull(first.state, now)) forget(first);
    }
  };
  return {
    get size() {
      return entries.size;
    },
    tryTake: (key, now) => {
      if (key.length > maxKeyLength) throw tooLong(key);
      const known = entries.get(key);
      const taken = bucket.take(known?.state ?? bucket.full, 1, now);
      if (known !== undefined) forget(known);
      remember(key, taken.state);
      forgetOldest(now);
      return taken.ok ? { ok: true } : { ok: false, waitMs: taken.waitMs };
    },
  };
};

const tooLong = ({ length }: string): MillraceError =>
  new MillraceError(
    'tooLarge',
    `A key of keyedBuckets() has at most ${maxKeyLength} characters, and this one has ${length}. Take one that is shorter, such as the id of the user.`,
  );
