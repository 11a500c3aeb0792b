import { defer, Observable, type SchedulerLike, tap, type Subscription } from 'rxjs';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../../models/model.js';
import { aroundModel } from '../../models/around-model.js';
import { checkModel, inTime } from '../../models/timeouts.js';
import {
  checkOptions,
  isFunction,
  longestDelayMs,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import { tokensIn, type Usage, addUsage, noUsage } from '../../values/usage.js';
import { createAdmissionGate, reportingWait, type Waiter } from './admission-gate.js';
import { isPositive, tokenBucket } from './token-bucket.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { countRequest, plainCounter } from '../../models/count-request.js';

export interface LimitRateOptions {
  readonly requestsPerMinute?: number | undefined;
  /** Tokens of requests and answers together. */
  readonly tokensPerMinute?: number | undefined;
  /** Maximum number of queued requests. One more errors with `queueFull`, which is retryable. Default: 100. */
  readonly maxQueue?: number | undefined;
  /** Estimates the tokens of a request and its answer. Default: an estimate of its text plus its `maxTokens`. */
  readonly count?: ((request: ModelRequest) => number) | undefined;
  /** Tokens of a reported usage that count. Default: all, including cache reads. */
  readonly countUsage?: ((usage: Usage) => number) | undefined;
}

/**
 * Keeps requests within a provider's limits per minute, across all models and agents that share it: `const limited =
 * limitRate({ requestsPerMinute: 500 })`, then `model: limited(openai('…'))`. Both limits are token buckets of one
 * minute, so a burst may follow a pause. Further requests wait in order. Tokens are reserved before the request and
 * corrected by the reported usage; a request larger than a minute's tokens waits for a full bucket.
 * In `limited(retry(model))`, retries count but do not wait; in `retry(limited(model))` they wait. Waiting emits a
 * `queued` event and counts towards `callMs` and `iterationMs`, not `firstChunkMs`. Put it next to the model:
 * `limitConcurrency(20)(limited(model))`.
 */
export const limitRate = (options: LimitRateOptions): ((model: Model) => Model) => {
  checkOptions('limitRate()', options, rules);
  const { requestsPerMinute, tokensPerMinute, maxQueue = 100 } = options;
  if (requestsPerMinute === undefined && tokensPerMinute === undefined) {
    throw misuse('limitRate() needs requestsPerMinute, tokensPerMinute or both.');
  }
  const { count = requestTokens, countUsage = tokensIn } = options;
  const requests = createRateMeter(requestsPerMinute);
  const tokens = createRateMeter(tokensPerMinute);
  const admissionGate = createAdmissionGate(maxQueue, () => queueFull(maxQueue));
  const clockPool = createClockPool(() => admissionGate.admitWaiting());

  const waiterFor = (reserved: number, context: ModelContext, spent: () => number): Waiter => ({
    onQueued: reportingWait('rate', context),
    tryAcquire: (isFirst) => {
      if (!isFirst) return false;
      const { now } = clockPool;
      const waitMs = Math.max(requests.waitMs(1, now), tokens.waitMs(reserved, now));
      if (waitMs > 0) {
        clockPool.wakeIn(waitMs);
        return false;
      }
      requests.spend(1, now);
      tokens.spend(reserved, now);
      return true;
    },
    release: () => tokens.spend(spent() - reserved, clockPool.read(context.scheduler)),
  });
  const limited$ = (
    model: Model,
    request: ModelRequest,
    context: ModelContext,
  ): Observable<ModelChunk> => {
    const reserved = tokensPerMinute === undefined ? 0 : checkedCount(count(request));
    const cost = trackCost(reserved, countUsage);
    const report: ModelContext['report'] = (event) => {
      if (event.type === 'modelRetry') requests.spend(1, clockPool.read(context.scheduler));
      context.report(event);
    };
    // Waiting requests may be admissible by now, even if their own clock stands still.
    admissionGate.admitWaiting();
    return admissionGate.enter$(
      waiterFor(reserved, context, () => cost.tokens),
      () => model.stream$(request, { ...context, report }).pipe(tap((chunk) => cost.add(chunk))),
    );
  };

  return (model) => {
    checkModel('limitRate()', model);
    const timed = inTime(model);
    return aroundModel(timed, (request, context) =>
      clockPool.whileUsing$(
        context.scheduler,
        defer(() => limited$(timed, request, context)),
      ),
    );
  };
};

interface RateMeter {
  /** Milliseconds until the amount can be spent; 0 if it can be spent now. */
  waitMs(amount: number, now: number): number;
  /** Spends an amount even if there is not enough; a negative amount is refunded. */
  spend(amount: number, now: number): void;
}

const createRateMeter = (perMinute: number | undefined): RateMeter => {
  if (perMinute === undefined) return { waitMs: () => 0, spend: () => undefined };
  const bucket = tokenBucket({ capacity: perMinute, refillPerMinute: perMinute });
  let state = bucket.full;
  return {
    waitMs: (amount, now) => {
      const result = bucket.take(state, amount, now);
      // Only checked here: spending waits until every meter has enough.
      if (result.ok) return 0;
      ({ state } = result);
      return result.waitMs;
    },
    spend: (amount, now) => {
      state = bucket.refund(state, -amount, now);
    },
  };
};

const checkedCount = (tokens: number): number => {
  if (Number.isFinite(tokens) && tokens >= 0) return tokens;
  throw misuse(`limitRate(): 'count' must return a number of at least 0, not ${tokens}.`);
};

const queueFull = (maxQueue: number): MillraceError =>
  new MillraceError(
    'queueFull',
    `${maxQueue} requests are already waiting for the rate limit ('maxQueue'). Try again later.`,
    { retryable: true },
  );

const rules: Readonly<Record<keyof LimitRateOptions, Rule>> = {
  requestsPerMinute: isPositive,
  tokensPerMinute: isPositive,
  maxQueue: wholeNumber(0),
  count: isFunction,
  countUsage: isFunction,
};

interface RequestCost {
  add(chunk: ModelChunk): void;
  /** The reported usage once the answer is complete; until then, at least the reserved tokens. */
  readonly tokens: number;
}

/** Tracks the cost of one answer. Discarded attempts count with their reported usage. */
const trackCost = (reserved: number, countUsage: (usage: Usage) => number): RequestCost => {
  let voided = noUsage;
  let usage: Usage | undefined;
  let reported = 0;
  let isComplete = false;
  return {
    add: (chunk) => {
      switch (chunk.type) {
        case 'usage':
          usage = updatedUsage(usage ?? noUsage, chunk.usage);
          reported = countUsage(addUsage(voided, usage));
          break;
        case 'restart':
          isComplete = false;
          if (chunk.isSameRequest === true) break;
          voided = addUsage(voided, usage ?? noUsage);
          usage = undefined;
          break;
        case 'finish':
          isComplete = true;
          break;
        default:
      }
    },
    get tokens() {
      if (!Number.isFinite(reported) || reported < 0) return reserved;
      return isComplete && usage !== undefined ? reported : Math.max(reserved, reported);
    },
  };
};

/** The schedulers of all requests that share a limit: mostly one; of several, some may stand still. */
interface ClockPool {
  /** Milliseconds, as last read from any of the clocks. */
  readonly now: number;
  read(scheduler: SchedulerLike): number;
  /** Keeps a scheduler in the pool while subscribed. Its timer goes with its last user. */
  whileUsing$<T>(scheduler: SchedulerLike, source$: Observable<T>): Observable<T>;
  /** Wakes up after up to `ms` milliseconds, by every clock in the pool. Waiters set it again. */
  wakeIn(ms: number): void;
}

interface PooledClock {
  users: number;
  wakeUp: { readonly at: number; readonly timer: Subscription } | undefined;
}

const createClockPool = (wake: () => void): ClockPool => {
  const byScheduler = new Map<SchedulerLike, PooledClock>();
  let now = 0;
  const read = (scheduler: SchedulerLike): number => {
    now = scheduler.now();
    return now;
  };
  const join = (scheduler: SchedulerLike): PooledClock => {
    read(scheduler);
    const clock = byScheduler.get(scheduler) ?? { users: 0, wakeUp: undefined };
    clock.users += 1;
    byScheduler.set(scheduler, clock);
    return clock;
  };
  const leave = (scheduler: SchedulerLike, clock: PooledClock): void => {
    read(scheduler);
    clock.users -= 1;
    if (clock.users > 0) return;
    clock.wakeUp?.timer.unsubscribe();
    byScheduler.delete(scheduler);
  };
  return {
    get now() {
      return now;
    },
    read,
    whileUsing$: (scheduler, source$) =>
      new Observable((subscriber) => {
        const clock = join(scheduler);
        subscriber.add(() => leave(scheduler, clock));
        source$.subscribe(subscriber);
      }),
    wakeIn: (ms) => {
      const delay = Math.min(ms, longestDelayMs);
      byScheduler.forEach((clock, scheduler) => {
        const at = scheduler.now() + delay;
        if (clock.wakeUp !== undefined && clock.wakeUp.at <= at) return;
        clock.wakeUp?.timer.unsubscribe();
        const timer = scheduler.schedule(() => {
          clock.wakeUp = undefined;
          read(scheduler);
          wake();
        }, delay);
        clock.wakeUp = { at, timer };
      });
    },
  };
};

/** Estimates the tokens of a request: its content plus the longest answer that it allows. */
const requestTokens = (request: ModelRequest): number =>
  countRequest(plainCounter, request) + (request.maxTokens ?? 0);
