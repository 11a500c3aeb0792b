import { MillraceError, misuse } from '../../values/errors.js';
import { checkOptions, numberFrom, type Rule, wholeNumber } from '../../values/options.js';
import { createLinkedList } from './admission-gate.js';

export interface TokenBucketOptions {
  /** Maximum number of tokens, and so the largest burst. */
  readonly capacity: number;
  /** Tokens that flow back per minute, evenly. */
  readonly refillPerMinute: number;
}

/** The fill level at a time; negative if the bucket is in debt. */
export interface BucketState {
  readonly tokens: number;
  /** In milliseconds, by the caller's clock. */
  readonly at: number;
}

/** The result of `take`, with the state to continue from. */
export type TakeResult =
  | { readonly ok: true; readonly state: BucketState }
  | {
      readonly ok: false;
      readonly state: BucketState;
      /** Milliseconds until there is enough, unless others take or refund. At least 1. */
      readonly waitMs: number;
    };

/** The rules of a token bucket. It is stateless: states are passed in and returned. */
export interface TokenBucket {
  readonly full: BucketState;
  /** Takes an amount if there is enough; more than the capacity empties a full bucket and leaves a debt. */
  take(state: BucketState, amount: number, now: number): TakeResult;
  /** Returns unused tokens; a negative amount is taken even if there is not enough. */
  refund(state: BucketState, amount: number, now: number): BucketState;
  /** A full bucket need not be stored. */
  isFull(state: BucketState, now: number): boolean;
}

/**
 * Creates the rules of a token bucket. No period can take more than the capacity plus the inflow. A clock that is set
 * back adds nothing; one that is set forward fills the bucket only once. Throws if a parameter is not a number.
 */
export const tokenBucket = (options: TokenBucketOptions): TokenBucket => {
  checkOptions('tokenBucket()', options, bucketRules, ['capacity', 'refillPerMinute']);
  const { capacity, refillPerMinute } = options;
  const perMs = refillPerMinute / 60_000;
  // Floating-point sums may miss an integer slightly.
  const tolerance = capacity * 1e-9;
  const filled = ({ tokens, at }: BucketState, now: number): BucketState => ({
    tokens: Math.min(capacity, tokens + Math.max(0, now - at) * perMs),
    at: now,
  });
  return {
    full: { tokens: capacity, at: 0 },
    take: (before, amount, now) => {
      if (amount < 0)
        throw misuse(`Cannot take ${amount} from a token bucket: use refund() to return tokens.`);
      check(amount, now);
      const state = filled(before, now);
      const missingIn = (ms: number): number =>
        Math.min(amount, capacity) - filled(state, now + ms).tokens;
      const missing = missingIn(0);
      if (missing <= tolerance)
        return { ok: true, state: { tokens: state.tokens - amount, at: now } };
      // The quotient may be off by one.
      const about = Math.ceil((missing - tolerance) / perMs);
      const waitMs = [about - 1, about].find((ms) => ms >= 1 && missingIn(ms) <= tolerance);
      return { ok: false, state, waitMs: waitMs ?? about + 1 };
    },
    refund: (before, amount, now) => {
      check(amount, now);
      const { tokens } = filled(before, now);
      return { tokens: Math.min(capacity, tokens + amount), at: now };
    },
    isFull: (state, now) => filled(state, now).tokens >= capacity,
  };
};

const check = (amount: number, now: number): void => {
  if (Number.isFinite(amount) && Number.isFinite(now)) return;
  throw misuse(
    `A token bucket needs an amount and a time in milliseconds, not ${amount} and ${now}.`,
  );
};

export const isPositive: Rule = [
  (value) => Number.isFinite(value) && Number(value) > 0,
  'a number above 0',
];

const bucketRules: Readonly<Record<keyof TokenBucketOptions, Rule>> = {
  capacity: isPositive,
  refillPerMinute: isPositive,
};

interface KeyedBucketsOptions extends TokenBucketOptions {
  /** Maximum number of buckets to keep, the most recently used ones. Default: 10,000. */
  readonly maxKeys?: number | undefined;
}

interface KeyedBuckets {
  readonly size: number;
  /** Takes one token of a key at `now` (ms), or returns the wait. Throws `tooLarge` for keys over 1,024 characters. */
  tryTake(
    key: string,
    now: number,
  ): { readonly ok: true } | { readonly ok: false; readonly waitMs: number };
}

interface Entry {
  readonly key: string;
  readonly state: BucketState;
  readonly unlink: () => void;
}

const maxKeyLength = 1_024;

/** Token buckets by key. Full ones are dropped; over `maxKeys`, the least recently used one starts over. */
export const keyedBuckets = (options: KeyedBucketsOptions): KeyedBuckets => {
  const rules = { ...bucketRules, capacity: numberFrom(1), maxKeys: wholeNumber(1) };
  checkOptions('keyedBuckets()', options, rules, ['capacity', 'refillPerMinute']);
  const { maxKeys = 10_000, capacity, refillPerMinute } = options;
  const bucket = tokenBucket({ capacity, refillPerMinute });
  const entries = new Map<string, Entry>();
  const byAge = createLinkedList<Entry>();

  const forget = ({ key, unlink }: Entry): void => {
    entries.delete(key);
    unlink();
  };
  const remember = (key: string, state: BucketState): void => {
    const entry: Entry = { key, state, unlink: () => unlink() };
    const unlink = byAge.add(entry);
    entries.set(key, entry);
  };
  // Two for each call: the buckets of a burst are gone after as many calls.
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
      const result = bucket.take(known?.state ?? bucket.full, 1, now);
      if (known !== undefined) forget(known);
      remember(key, result.state);
      forgetOldest(now);
      return result.ok ? { ok: true } : { ok: false, waitMs: result.waitMs };
    },
  };
};

const tooLong = ({ length }: string): MillraceError =>
  new MillraceError(
    'tooLarge',
    `A key of keyedBuckets() can have up to ${maxKeyLength} characters; this one has ${length}. Use a shorter key, such as a user ID.`,
  );
