import type { Model } from '../model.js';
import { around, checkModel, inTime } from '../models/ready.js';
import { checkOptions, wholeNumber } from '../options.js';
import { createSemaphore, type Semaphore } from './semaphore.js';

/** How much may wait for a limit. */
export interface LimitConcurrencyOptions {
  /** Requests that may wait. One more errors with `queueFull`, which is retryable. Default: 100. */
  readonly maxQueue?: number;
}

/** Limits a model: all that it is applied to share one limit. */
export interface ConcurrencyLimit {
  (model: Model): Model;
  /** Who holds the slots, and how many wait. It can limit other work, too. */
  readonly semaphore: Semaphore;
}

/**
 * Limits concurrent requests across all models and agents that share it: `const limited = limitConcurrency(20)`, then `model:
 * limited(openai('…'))`. Others wait in order. A slot is taken on subscription and freed when the answer completes, errors or is left.
 *
 * Waiting emits a `queued` event and counts into `callMs` and `iterationMs`. `retry(limited(model))` frees its slot between attempts,
 * `limited(retry(model))` keeps it; `fallback(limited(a), b)` asks `b` when the queue is full. Do not share its semaphore with whole
 * calls: they would wait for themselves.
 */
export const limitConcurrency = (
  max: number,
  options: LimitConcurrencyOptions = {},
): ConcurrencyLimit => {
  checkOptions('limitConcurrency()', options, { maxQueue: wholeNumber(0) });
  checkOptions('limitConcurrency()', { max }, { max: wholeNumber(1) }, ['max']);
  const semaphore = createSemaphore({ ...options, max, what: 'requests' });
  const limit = (model: Model): Model => {
    checkModel('limitConcurrency()', model);
    const timed = inTime(model);
    return around(timed, (request, context) =>
      semaphore.hold$(
        () => timed.stream$(request, context),
        undefined,
        (ahead) => context.report({ type: 'queued', why: 'concurrency', ahead }),
      ),
    );
  };
  return Object.assign(limit, { semaphore });
};
