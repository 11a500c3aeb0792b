import { MillraceError, misuse } from '../../values/errors.js';
import { checkOptions, numberFrom, type Rule, wholeNumber } from '../../values/options.js';
import { createLine } from './gate.js';

/** How much may be taken. */
export interface TokenBucketOptions {
  /** What a full bucket holds: as much may be taken at once. */
  readonly capacity: number;
  /** What flows back in a minute, evenly. */
  readonly refillPerMinute: number;
}

/** What a bucket holds at a time: less than nothing, where it is in debt. */
export interface BucketState {
  readonly tokens: number;
  /** In milliseconds, by the clock of whoever takes. */
  readonly at: number;
}

/** What came of taking: with the state from which to go on, also where there was not enough. */
export type Taken =
  | { readonly ok: true; readonly state: BucketState }
  | {
      readonly ok: false;
      readonly state: BucketState;
      /** After so many milliseconds there is enough, unless others take or give. At least 1. */
      readonly waitMs: number;
    };

/** The rules of a token bucket. It remembers nothing: states go in and come out. */
export interface TokenBucket {
  /** A full bucket, at any time. */
  readonly full: BucketState;
  /** Takes an amount, where there is enough. More than a full bucket holds is taken from a full one, and leaves a debt that flows in before anything else can be taken. */
  take(state: BucketState, amount: number, now: number): Taken;
  /** Gives back what was taken and not needed; a negative amount is taken even where there is not enough. */
  give(state: BucketState, amount: number, now: number): BucketState;
  /** Whether it is full at this time: then it need not be remembered. */
  isFull(state: BucketState, now: number): boolean;
}

/**
 * Makes the rules of a token bucket. Within any time at most its capacity and what flows in
 * meanwhile is taken. A clock that is set back fills nothing, and one that is set forward fills it
 * at most once. An amount or a time that is no number is a misuse.
 */
export const tokenBucket = (options: TokenBucketOptions): TokenBucket => {
  checkOptions('tokenBucket()', options, bucketRules, ['capacity', 'refillPerMinute']);
  const { capacity, refillPerMinute } = options;
  const perMs = refillPerMinute / 60_000;
  // Sums of fractions may miss a whole number by a little.
  const tolerance = capacity * 1e-9;
  const filled = ({ tokens, at }: BucketState, now: number): BucketState => ({
    tokens: Math.min(capacity, tokens + Math.max(0, now - at) * perMs),
    at: now,
  });
  return {
    full: { tokens: capacity, at: 0 },
    take: (before, amount, now) => {
      if (amount < 0)
        throw misuse(`A token bucket cannot be taken ${amount} from: give() gives back.`);
      check(amount, now);
      const state = filled(before, now);
      const missing = Math.min(amount, capacity) - state.tokens;
      return missing > tolerance
        ? { ok: false, state, waitMs: Math.ceil((missing - tolerance / 2) / perMs) }
        : { ok: true, state: { tokens: state.tokens - amount, at: now } };
    },
    give: (before, amount, now) => {
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

/** How much each key may take, and how many are remembered. */
interface KeyedBucketsOptions extends TokenBucketOptions {
  /** Buckets that are remembered: the ones used last. Default: 10,000. */
  readonly maxKeys?: number;
}

/** A token bucket for each user, tenant or address. */
interface KeyedBuckets {
  /** How many are remembered. */
  readonly size: number;
  /** Takes one token of a key at a time in milliseconds, such as `scheduler.now()`, or says how long it is until there is one. Throws `tooLarge` for a key of more than 1,024 characters. */
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

/** Makes token buckets by key. Those that are full again are forgotten, nothing being lost; where there are too many others, the one that was not used for the longest time begins anew. */
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
