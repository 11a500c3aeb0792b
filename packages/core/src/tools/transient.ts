import { isMillraceError, messageOf, MillraceError } from '../errors.js';
import type { ToolRetry } from './types.js';
import { type MonoTypeOperatorFunction, retry, type SchedulerLike, timer } from 'rxjs';

/** Marks an error as one of the moment: a tool with `retry` is run again after it. Pass on what was thrown, or say what is wrong. */
export const transient = (cause: unknown): MillraceError =>
  new MillraceError('tool', messageOf(cause), { cause, retryable: true });

/** Runs a tool again after an error that `transient` has marked, and after no other. `onRetry` hears of it before the wait. */
export const retryTransient = <T>(
  { attempts = 3, backoffMs = 800, growth = 'linear' }: ToolRetry,
  scheduler: SchedulerLike,
  onRetry: (error: unknown, attempt: number, attempts: number, ms: number) => void,
): MonoTypeOperatorFunction<T> =>
  retry({
    delay: (error: unknown, attempt) => {
      const isMarked = isMillraceError(error) && error.code === 'tool' && error.retryable;
      if (!isMarked || attempt >= attempts) throw error;
      const ms = backoffMs * (growth === 'linear' ? attempt : 2 ** (attempt - 1));
      onRetry(error, attempt, attempts, ms);
      return timer(ms, scheduler);
    },
  });
