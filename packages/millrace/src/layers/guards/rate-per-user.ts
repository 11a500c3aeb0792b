import type { TimestampProvider } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import type { Interceptor } from '../../seams/interceptor.js';
import { type Rule, checkOptions, having, isFunction, wholeNumber } from '../../values/options.js';
import { defined } from '../../values/json.js';
import { isPositive, keyedBuckets } from '../traffic/token-bucket.js';
import { guardInput, type GuardOptions, guardRules } from './guard-input.js';

export interface RatePerUserOptions extends GuardOptions {
  /** Inputs per `perMs`: as many in a burst, refilled evenly. */
  readonly calls: number;
  /** Milliseconds. Default: 60,000. */
  readonly perMs?: number | undefined;
  /** The key of the user. Default: `metadata.userId`. A call without a user is rejected. */
  readonly by?: ((call: CallInfo) => string | undefined) | undefined;
  /** Maximum number of users to keep, the most recent ones. Default: 10,000. */
  readonly maxUsers?: number | undefined;
  /** Clock, such as a scheduler; an interceptor does not know that of the call. Default: `Date`. */
  readonly clock?: TimestampProvider | undefined;
}

/**
 * Rejects the input of a user who calls too often: the error is `retryable` and has `retryAfterMs`. Messages to a
 * running call count too, and so does input that another guard rejects later. Agents that share this guard share its
 * counters; processes do not. A key of more than 1,024 characters is rejected.
 */
export const ratePerUser = (options: RatePerUserOptions): Interceptor => {
  checkOptions('ratePerUser()', options, rules, ['calls']);
  const { calls, perMs = 60_000, by = userOf, maxUsers, clock = Date, ...named } = options;
  const buckets = keyedBuckets({
    capacity: calls,
    refillPerMinute: (calls * 60_000) / perMs,
    ...(maxUsers === undefined ? {} : { maxKeys: maxUsers }),
  });
  return guardInput(
    ({ call }) => {
      const user: unknown = by(call);
      if (typeof user !== 'string' || user === '') {
        return { allowed: false, reason: missingUser, userMessage: unknownUser };
      }
      const result = buckets.tryTake(user, clock.now());
      if (result.ok) return true;
      const reason = `its user called more than ${calls} times in ${perMs} ms`;
      return { allowed: false, reason, retryAfterMs: result.waitMs };
    },
    { name: 'ratePerUser', userMessage: tooOften, ...defined(named) },
  );
};

const userOf = ({ metadata }: CallInfo): string | undefined =>
  Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;

const missingUser =
  "the call has no user. Pass { metadata: { userId } } with the call, or set 'by'";

const unknownUser = 'This request cannot be answered.';

const tooOften = 'Too many requests. Please try again in a moment.';

const rules: Readonly<Record<keyof RatePerUserOptions, Rule>> = {
  ...guardRules,
  calls: wholeNumber(1),
  perMs: isPositive,
  by: isFunction,
  maxUsers: wholeNumber(1),
  clock: [
    (value) => value === Date || having('now', '')[0](value),
    'a clock with now(), such as a scheduler',
  ],
};
