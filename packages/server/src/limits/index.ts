import { MillraceError } from 'millrace';
import { checkOptions, wholeNumber } from 'millrace/values';

/**
 * Lets a user start a call, or throws a `busy` error with its `status` (429). `open` is the number of calls of the user that
 * run or wait. Returns the function that is called once the call has become one of these, or has ended.
 */
export type UserLimits = (user: string, open: number) => () => void;

/** Options of `userLimits`. */
export interface UserLimitsOptions {
  /** The maximum number of calls of a user that run or wait. Default: 100. */
  readonly calls?: number | undefined;
  /** The maximum number of calls that a user may start in a minute. Default: no limit. */
  readonly perMinute?: number | undefined;
}

/** The number of users whose recent calls are remembered. */
const mostKept = 10_000;
const minuteMs = 60_000;

/** Limits the calls of each user, in this process: `chatServer(agent, { user, limits: userLimits({ perMinute: 20 }) })`. */
export const userLimits = (
  options: UserLimitsOptions = {},
  now: () => number = Date.now,
): UserLimits => {
  checkOptions('userLimits()', options, { calls: wholeNumber(1), perMinute: wholeNumber(1) });
  const { calls = 100, perMinute = Infinity } = options;
  const taken = new Map<string, number>();
  const due = new Map<string, Due>();
  const count = (user: string, by: number): void => {
    const left = (taken.get(user) ?? 0) + by;
    if (left === 0) taken.delete(user);
    else taken.set(user, left);
  };
  const forget = (at: number): void => {
    for (const [user, it] of due) {
      if (due.size < mostKept) return;
      if (it.next <= at || it.at > at) due.delete(user);
    }
  };
  return (user, open) => {
    if (open + (taken.get(user) ?? 0) >= calls) {
      throw tooMany('You have too many unanswered questions. Wait for an answer.');
    }
    if (perMinute !== Infinity) {
      const at = now();
      const from = Math.max(nextOf(due.get(user), at), at);
      const next = from + minuteMs / perMinute;
      const waitMs = next - at - minuteMs;
      if (waitMs > 0) {
        due.set(user, { at, next: from });
        throw tooMany('Too many requests. Try again later.', waitMs);
      }
      forget(at);
      due.set(user, { at, next });
    }
    count(user, 1);
    let isTaken = true;
    return () => {
      if (isTaken) count(user, -1);
      isTaken = false;
    };
  };
};

interface Due {
  /** When the user last asked for a call. */
  readonly at: number;
  /** When the user may start the next one, if calls were evenly spaced. */
  readonly next: number;
}

/** If the clock was set back, no time has passed since then. */
const nextOf = (due: Due | undefined, at: number): number =>
  due === undefined ? at : due.next - Math.max(0, due.at - at);

const tooMany = (userMessage: string, retryAfterMs?: number): MillraceError =>
  new MillraceError('busy', `A user has reached a limit: ${userMessage}`, {
    status: 429,
    userMessage,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
