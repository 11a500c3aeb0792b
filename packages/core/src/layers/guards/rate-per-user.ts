import type { TimestampProvider } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import type { Interceptor } from '../../seams/interceptor.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, defined, having, isFunction, wholeNumber } from '../../values/options.js';
import { isPositive, keyedBuckets } from '../traffic/token-bucket.js';
import { guardInput, type GuardOptions, guardRules } from './guard-input.js';

/** How often a user may call. */
export interface RatePerUserOptions extends GuardOptions {
  /** As many inputs at once, and as many in each `perMs` on average: they come back evenly. */
  readonly calls: number;
  /** In milliseconds. Default: 60,000. */
  readonly perMs?: number;
  /** Who a call is for. Default: its `metadata.userId`. A call of nobody is refused. */
  readonly by?: (call: CallInfo) => string | undefined;
  /** Users that are remembered: the ones who called last. Default: 10,000. */
  readonly maxUsers?: number;
  /** What tells the time: a scheduler does. An interceptor is not told that of the call. Default: `Date`. */
  readonly clock?: TimestampProvider;
}

/**
 * Refuses what a user says too soon: the error is `retryable`, and has `retryAfterMs`. What is said to a running call counts too.
 * What another guard refuses afterwards has been counted. The numbers are of this guard: agents that share it share them,
 * processes do not. A key of more than 1,024 characters is refused.
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
        return { allowed: false, reason: nobody, userMessage: unknownUser };
      }
      const taken = buckets.tryTake(user, clock.now());
      if (taken.ok) return true;
      const reason = `its user has called more than ${calls} times in ${perMs} ms`;
      return { allowed: false, reason, retryAfterMs: taken.waitMs };
    },
    { name: 'ratePerUser', userMessage: tooOften, ...defined(named) },
  );
};

const userOf = ({ metadata }: CallInfo): string | undefined =>
  Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;

const nobody =
  "the call does not say who it is for. Pass { metadata: { userId } } with it, or say 'by' what users are told apart";

const unknownUser = 'This request cannot be answered.';

const tooOften = 'That was too much at once. Please try again in a moment.';

const rules: Readonly<Record<keyof RatePerUserOptions, Rule>> = {
  ...guardRules,
  calls: wholeNumber(1),
  perMs: isPositive,
  by: isFunction,
  maxUsers: wholeNumber(1),
  clock: [
    (value) => value === Date || having('now', '')[0](value),
    'something that tells the time, such as a scheduler',
  ],
};
