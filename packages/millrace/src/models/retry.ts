import {
  catchError,
  concat,
  defer,
  EMPTY,
  type Observable,
  of,
  retry as resubscribe,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import type { MillraceError } from '../values/errors.js';
import { isMillraceError, misuse, revised, toMillraceError } from '../values/errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest, ModelTimeouts } from './model.js';
import type { Rule } from '../values/options.js';
import { defined } from '../values/json.js';
import { checkOptions, type Complete, isDelay, isFlag, wholeNumber } from '../values/options.js';
import { dropWarning, supportedOptions } from './request-options.js';
import { aroundModel, hasContent } from './around-model.js';
import { checkModel, inTime, isSilence } from './timeouts.js';
import { ready } from './answer-tool.js';

export interface RetryOptions {
  /** Maximum number of requests. Default: 3. */
  readonly attempts?: number | undefined;
  /** The first delay, in milliseconds; it doubles each time. Default: 1,000. */
  readonly minMs?: number | undefined;
  /** The maximum delay before jitter, in milliseconds. Default: 10,000. */
  readonly maxMs?: number | undefined;
  /** The random share by which a delay is longer or shorter, from 0 to 1. Default: 0.25. */
  readonly jitter?: number | undefined;
  /** Fails without a retry if the provider asks for a longer wait, in milliseconds. Default: 60,000. */
  readonly maxRetryWait?: number | undefined;
  /**
   * Whether to retry after part of the answer was emitted. A `messageDiscarded` event voids that part, and the next
   * attempt has a new `messageId`. Default: false.
   */
  readonly retryPartial?: boolean | undefined;
}

type Policy = Complete<RetryOptions>;

const defaults: Policy = {
  attempts: 3,
  minMs: 1_000,
  maxMs: 10_000,
  jitter: 0.25,
  maxRetryWait: 60_000,
  retryPartial: false,
};

/**
 * Retries requests that fail with a retryable error; only once if the model did not start to answer in time. Waits as long
 * as the provider asks, or with exponential backoff and jitter. Each retry emits `modelRetry`; the call's `retryBudget` limits their number. Around a model that already retries, this policy replaces the inner one.
 */
export const retry = (model: Model, options: RetryOptions = {}): Model => {
  if (typeof model === 'number' || typeof options === 'number') {
    throw misuse('retry() takes a model, and options: retry(model, { attempts: 2 }).');
  }
  checkModel('retry()', model);
  checkOptions('retry()', options, rules);
  const policy: Policy = { ...defaults, ...defined(options) };
  const timed = inTime(model);
  return aroundModel(timed, (request, context) =>
    context.isRetried === true
      ? timed.stream$(request, context)
      : attempts$(timed, policy, request, context),
  );
};

const attempts$ = (
  model: Model,
  policy: Policy,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> =>
  defer(() => {
    let progress = nothingYet;
    let silences = 0;
    let void$: Observable<ModelChunk> = EMPTY;
    const lent: ModelContext = { ...context, isRetried: true };
    return defer(() => {
      progress = nothingYet;
      return concat(void$, model.stream$(request, lent));
    }).pipe(
      restoreAsyncContext(),
      tap((chunk) => {
        progress = progressAfter(progress, chunk);
      }),
      resubscribe({
        delay: (error: unknown, attempt) => {
          const refused = !isMillraceError(error) || !error.retryable || progress.isWhole;
          // A user who has waited that long twice does not wait a third time.
          const isSilent = !refused && isSilence(error);
          if (isSilent) silences += 1;
          if (
            refused ||
            (isSilent && silences > 1) ||
            (progress.isShown && !policy.retryPartial) ||
            attempt >= policy.attempts
          ) {
            return throwError(() => toMillraceError(error));
          }
          void$ = voiding$(progress, error);
          return wait$(error, model.name, attempt, policy, context);
        },
      }),
    );
  });

const wait$ = (
  error: MillraceError,
  model: string,
  attempt: number,
  policy: Policy,
  { scheduler, random, report, retryBudget }: ModelContext,
): Observable<unknown> => {
  const { attempts, minMs, maxMs, jitter, maxRetryWait } = policy;
  const { retryAfterMs } = error;
  if (retryAfterMs !== undefined && retryAfterMs > maxRetryWait) {
    return throwError(() => tooLong(error, retryAfterMs, maxRetryWait));
  }
  if (retryBudget?.take() === false) return throwError(() => error);
  const backoff = Math.min(maxMs, minMs * 2 ** (attempt - 1)) * (1 + jitter * (2 * random() - 1));
  const waitMs = Math.round(retryAfterMs ?? backoff);
  report({ type: 'modelRetry', model, attempt, attempts, waitMs, error });
  return timer(waitMs, scheduler);
};

const tooLong = (error: MillraceError, waitMs: number, maxRetryWait: number): MillraceError =>
  revised(error, {
    message: `${error.message} It asks to wait ${waitMs} ms, which is more than maxRetryWait (${maxRetryWait} ms).`,
  });

const rules: Readonly<Record<keyof RetryOptions, Rule>> = {
  attempts: wholeNumber(1),
  minMs: isDelay,
  maxMs: isDelay,
  jitter: [
    (value) => typeof value === 'number' && value >= 0 && value <= 1,
    'a number from 0 to 1',
  ],
  maxRetryWait: isDelay,
  retryPartial: isFlag,
};

/**
 * Aborts a request with `timeout` (retryable) if the model sends no content for too long; heartbeats are no content, and
 * time with closed demand does not count. A model that shows that it works, as reasoning models do, has until `busyMs`. Around `retry`, the limits hold for each attempt. The call's limits take
 * precedence, then those of the outermost wrapper. Without limits, those of the call are measured here: on the chunks of this model, not on what
 * a wrapper around it emits.
 */
export const timeouts = (model: Model, limits?: ModelTimeouts): Model => {
  checkModel('timeouts()', model);
  if (limits === undefined) return inTime(model);
  checkOptions('timeouts()', limits, { firstChunkMs: isDelay, chunkMs: isDelay, busyMs: isDelay });
  const own = defined(limits);
  if (Object.keys(own).length === 0) {
    throw misuse('timeouts() needs firstChunkMs, chunkMs or busyMs.');
  }
  const timed = inTime(model);
  return aroundModel(timed, (request, context) =>
    timed.stream$(request, { ...context, timeouts: { ...own, ...defined(context.timeouts) } }),
  );
};

/**
 * Asks the next model if one fails with a retryable error before any content. Each change emits `modelFallback`. An option
 * that only some of the models support is dropped for the others, with a `warning`.
 */
export const fallback = (...models: readonly Model[]): Model => {
  models.forEach((model) => {
    checkModel('fallback()', model);
  });
  const [first, ...others] = models.map(ready);
  if (first === undefined || others.length === 0) {
    throw misuse('fallback() needs a model, and at least one to fall back on.');
  }
  const unsupported = (first.unsupported ?? []).filter((option) =>
    others.every((model) => model.unsupported?.includes(option)),
  );
  return aroundModel(first, (request, context) => answer$(first, others, request, context), {
    unsupported,
  });
};

const answer$ = (
  model: Model,
  [next, ...rest]: readonly Model[],
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> =>
  defer(() => {
    let progress = nothingYet;
    return model.stream$(forModel(model, request, context), context).pipe(
      restoreAsyncContext(),
      tap((chunk) => {
        progress = progressAfter(progress, chunk);
      }),
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        if (next === undefined || progress.isShown || progress.isWhole || !error.retryable) {
          return throwError(() => error);
        }
        // An observer of the event may unsubscribe: then the next model is not asked.
        const change$ = defer(() => {
          context.report({ type: 'modelFallback', from: model.name, to: next.name, error });
          return EMPTY;
        });
        return concat(change$, voiding$(progress, error), answer$(next, rest, request, context));
      }),
    );
  });

const forModel = (
  model: Model,
  { messages, ...wanted }: ModelRequest,
  { report }: ModelContext,
): ModelRequest => {
  const { options, dropped } = supportedOptions(model, wanted);
  dropped.forEach((option) => report(dropWarning(model, option)));
  return { ...options, messages };
};

interface Progress {
  readonly isBegun: boolean;
  readonly isShown: boolean;
  readonly isWhole: boolean;
}

const nothingYet: Progress = { isBegun: false, isShown: false, isWhole: false };

const progressAfter = (progress: Progress, chunk: ModelChunk): Progress => {
  if (chunk.type === 'restart') return { ...nothingYet, isBegun: chunk.isSameRequest === true };
  const isShown = progress.isShown || hasContent(chunk);
  const isWhole = progress.isWhole || chunk.type === 'finish';
  return progress.isBegun && isShown === progress.isShown && isWhole === progress.isWhole
    ? progress
    : { isBegun: true, isShown, isWhole };
};

/** Discards the text and usage of an attempt before the next one. */
const voiding$ = ({ isBegun }: Progress, error: MillraceError): Observable<ModelChunk> =>
  isBegun ? of({ type: 'restart', why: `Retrying the request: ${error.message}` }) : EMPTY;
