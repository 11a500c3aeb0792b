import { MillraceError } from '@millrace/core';

/** The limits of each user. */
export interface UserLimits {
  /** The maximum number of calls of a user that run or wait; another one is refused (429). Default: 100. */
  readonly maxCallsPerUser?: number;
  /** The maximum number of calls that a user may start in a minute; another one is refused (429). Default: none. */
  readonly callsPerMinute?: number;
}

/** How many users are kept whose calls of the last minute are counted. */
const mostKept = 10_000;
const minuteMs = 60_000;

/**
 * Takes places for calls of users; `open` is the number of calls of the user that run or wait. Returns the function that
 * gives the place back, for a call that has become one of these, or has ended.
 */
export const createUserLimits = (
  { maxCallsPerUser = 100, callsPerMinute = Infinity }: UserLimits,
  now: () => number = Date.now,
): ((user: string, open: number) => () => void) => {
  const taken = new Map<string, number>();
  /** When a user may start the next call, if calls came evenly. */
  const due = new Map<string, number>();
  const count = (user: string, by: number): void => {
    const left = (taken.get(user) ?? 0) + by;
    if (left === 0) taken.delete(user);
    else taken.set(user, left);
  };
  const forget = (at: number): void => {
    for (const [user, dueAt] of due) {
      if (due.size < mostKept) return;
      if (dueAt <= at) due.delete(user);
    }
  };
  return (user, open) => {
    if (open + (taken.get(user) ?? 0) >= maxCallsPerUser) {
      throw tooMany('You have too many open questions. Wait for an answer.');
    }
    if (callsPerMinute !== Infinity) {
      const at = now();
      const next = Math.max(due.get(user) ?? at, at) + minuteMs / callsPerMinute;
      const waitMs = next - at - minuteMs;
      if (waitMs > 0) throw tooMany('You ask too often. Try again later.', waitMs);
      forget(at);
      due.set(user, next);
    }
    count(user, 1);
    let isTaken = true;
    return () => {
      if (isTaken) count(user, -1);
      isTaken = false;
    };
  };
};

const tooMany = (userMessage: string, retryAfterMs?: number): MillraceError =>
  new MillraceError('busy', `A user is at a limit: ${userMessage}`, {
    status: 429,
    userMessage,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
