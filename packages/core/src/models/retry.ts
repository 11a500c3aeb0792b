import {
  concat,
  defer,
  EMPTY,
  type Observable,
  retry as resubscribe,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { isMillraceError, type MillraceError, revised, toMillraceError } from '../errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../model.js';
import { checkOptions, defined, isDelay, isFlag, type Rule, wholeNumber } from '../options.js';
import { around } from './around.js';
import { checkModel } from './check-model.js';
import { inTime, isSilence } from './in-time.js';
import { nothingYet, progressBehind, voiding$ } from './progress.js';

/** How often and when a request is sent again. */
export interface RetryOptions {
  /** Requests in all. Default: 3. */
  readonly attempts?: number;
  /** The first wait, in milliseconds; each further one is twice as long. Default: 1,000. */
  readonly minMs?: number;
  /** The longest wait before jitter, in milliseconds. Default: 10,000. */
  readonly maxMs?: number;
  /** How far a wait may be off either way, as a share of it. Default: 0.25. */
  readonly jitter?: number;
  /** A provider that asks for a longer wait than this, in milliseconds, is not waited for. Default: 60,000. */
  readonly maxRetryWait?: number;
  /**
   * Whether to send a request again when part of its answer was shown already. That part is void then: a
   * `messageDiscarded` event says so, and the chunks of the next attempt have another `messageId`. Default: false.
   */
  readonly retryPartial?: boolean;
}

type Policy = Required<RetryOptions>;

const defaults: Policy = {
  attempts: 3,
  minMs: 1_000,
  maxMs: 10_000,
  jitter: 0.25,
  maxRetryWait: 60_000,
  retryPartial: false,
};

/**
 * Sends a request again when its error is retryable, only once if the model did not begin to answer in time: after the wait that the provider asked for, else
 * after one that doubles, with jitter. Each is announced by a `modelRetry` event. The attempts are also
 * bounded by the call's `retryBudget`. Around a model that retries already, this policy replaces that one.
 */
export const retry = (model: Model, options: RetryOptions = {}): Model => {
  checkModel('retry()', model);
  checkOptions('retry()', options, rules);
  const policy: Policy = { ...defaults, ...defined(options) };
  const timed = inTime(model);
  return around(timed, (request, context) =>
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
      tap((chunk) => {
        progress = progressBehind(progress, chunk);
      }),
      resubscribe({
        delay: (error: unknown, attempt) => {
          const refused = !isMillraceError(error) || !error.retryable || progress.isWhole;
          // Who has waited that long twice is not made to wait a third time.
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
