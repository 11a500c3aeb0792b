import { isMillraceError, messageOf, MillraceError } from '../errors.js';
import type { ToolRetry } from './types.js';
import { type MonoTypeOperatorFunction, retry, type SchedulerLike, timer } from 'rxjs';

/**
 * Marks an error as one of the moment: a tool with `retry` is run again after it. Pass on what was thrown, or say what is wrong.
 */
export const transient = (cause: unknown): MillraceError =>
  new MillraceError('tool', messageOf(cause), { cause, retryable: true });

/** Runs a tool again after an error that is retryable, and after no other. */
export const retryTransient = <T>(
  { attempts = 3, backoffMs = 800, growth = 'linear' }: ToolRetry,
  scheduler: SchedulerLike,
): MonoTypeOperatorFunction<T> =>
  retry({
    delay: (error: unknown, attempt) => {
      if (!isMillraceError(error) || !error.retryable || attempt >= attempts) throw error;
      return timer(backoffMs * (growth === 'linear' ? attempt : 2 ** (attempt - 1)), scheduler);
    },
  });
