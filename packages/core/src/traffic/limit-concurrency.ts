import type { Model } from '../model.js';
import { around } from '../models/around.js';
import { checkModel } from '../models/check-model.js';
import { inTime } from '../models/in-time.js';
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
 * Lets at most so many requests run at once, whichever models and agents they come from; the others
 * wait for their turn in the order in which they came: `const limited = limitConcurrency(20)`, then
 * `model: limited(openai('…'))`. A slot is taken on subscription, and free in the tick in which the
 * answer completes, errors or is left.
 *
 * Waiting is told by a `queued` event, and counts into `callMs` and `iterationMs`; `firstChunkMs` begins with the request. A retry
 * outside gives its slot back while it waits for its next attempt, `retry(limited(model))`; one
 * inside keeps it, `limited(retry(model))`, as do vendors' models, which retry by themselves unless
 * a `retry` stands outside. `fallback(limited(a), b)` asks `b` when the queue is full.
 *
 * Its semaphore should not limit whole calls too: calls that hold all its slots would wait for
 * slots to ask their models.
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
