import { defer, Observable, type SchedulerLike, tap, type Subscription } from 'rxjs';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../../models/model.js';
import { around, checkModel, inTime } from '../../models/timeouts.js';
import { checkOptions, isFunction, type Rule, wholeNumber } from '../../values/options.js';
import { tokensIn, type Usage, addUsage, noUsage } from '../../values/usage.js';
import { createGate, type Guest } from './gate.js';
import { isPositive, tokenBucket } from './token-bucket.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { countRequest, plainCounter } from '../../models/count-request.js';

/** What a provider takes in a minute. */
export interface LimitRateOptions {
  readonly requestsPerMinute?: number;
  /** Tokens of requests and answers together. */
  readonly tokensPerMinute?: number;
  /** Requests that may wait. One more errors with `queueFull`, which is retryable. Default: 100. */
  readonly maxQueue?: number;
  /** Estimates the tokens of a request, its answer included. Default: an estimate of its texts, plus its `maxTokens`. */
  readonly count?: (request: ModelRequest) => number;
  /** The tokens of a reported usage that the provider counts. Default: all of them, those read from its cache too. */
  readonly countUsage?: (usage: Usage) => number;
}

/**
 * Keeps requests within a provider's limits per minute, across all models and agents that share it: `const limited = limitRate({ requestsPerMinute: 500 })`, then `model: limited(openai('…'))`. Both limits are token buckets of one minute, so a burst may follow a pause. Further requests wait in order.
 * Tokens are reserved before the request and corrected by the usage that the answer reports; a request larger than a minute's tokens waits for a full bucket. In `limited(retry(model))`, retries count but do not wait; in `retry(limited(model))` they wait. Waiting emits a `queued` event and counts
 * towards `callMs` and `iterationMs`, not `firstChunkMs`. Put it next to the model: `limitConcurrency(20)(limited(model))`.
 */
export const limitRate = (options: LimitRateOptions): ((model: Model) => Model) => {
  checkOptions('limitRate()', options, rules);
  const { requestsPerMinute, tokensPerMinute, maxQueue = 100 } = options;
  if (requestsPerMinute === undefined && tokensPerMinute === undefined) {
    throw misuse('limitRate() needs requestsPerMinute, tokensPerMinute or both.');
  }
  const { count = requestTokens, countUsage = tokensIn } = options;
  const requests = createMeter(requestsPerMinute);
  const tokens = createMeter(tokensPerMinute);
  const gate = createGate(maxQueue, () => full(maxQueue));
  const clocks = createClocks(() => gate.look());

  const guestOf = (reserved: number, scheduler: SchedulerLike, spent: () => number): Guest => ({
    admit: (isFirst) => {
      if (!isFirst) return false;
      const { now } = clocks;
      const waitMs = Math.max(requests.waitMs(1, now), tokens.waitMs(reserved, now));
      if (waitMs > 0) {
        clocks.ringIn(waitMs);
        return false;
      }
      requests.spend(1, now);
      tokens.spend(reserved, now);
      return true;
    },
    leave: () => tokens.spend(spent() - reserved, clocks.read(scheduler)),
  });
  const answer$ = (
    model: Model,
    request: ModelRequest,
    context: ModelContext,
  ): Observable<ModelChunk> => {
    const reserved = tokensPerMinute === undefined ? 0 : counted(count(request));
    const bill = openBill(reserved, countUsage);
    const report: ModelContext['report'] = (event) => {
      if (event.type === 'modelRetry') requests.spend(1, clocks.read(context.scheduler));
      context.report(event);
    };
    // Time has passed for those who wait, by a clock that they may not have.
    gate.look();
    return gate.enter$(
      {
        ...guestOf(reserved, context.scheduler, () => bill.tokens),
        waits: (ahead) => context.report({ type: 'queued', why: 'rate', ahead }),
      },
      () => model.stream$(request, { ...context, report }).pipe(tap((chunk) => bill.read(chunk))),
    );
  };

  return (model) => {
    checkModel('limitRate()', model);
    const timed = inTime(model);
    return around(timed, (request, context) =>
      clocks.during$(
        context.scheduler,
        defer(() => answer$(timed, request, context)),
      ),
    );
  };
};

interface Meter {
  /** How long until so much can be spent: 0, when it can be now. */
  waitMs(amount: number, now: number): number;
  /** Spends it, whether there is enough or not; a negative amount comes back. */
  spend(amount: number, now: number): void;
}

const createMeter = (perMinute: number | undefined): Meter => {
  if (perMinute === undefined) return { waitMs: () => 0, spend: () => undefined };
  const bucket = tokenBucket({ capacity: perMinute, refillPerMinute: perMinute });
  let state = bucket.full;
  return {
    waitMs: (amount, now) => {
      const taken = bucket.take(state, amount, now);
      // What is taken is spent when there is enough of everything.
      if (taken.ok) return 0;
      ({ state } = taken);
      return taken.waitMs;
    },
    spend: (amount, now) => {
      state = bucket.give(state, -amount, now);
    },
  };
};

const counted = (tokens: number): number => {
  if (Number.isFinite(tokens) && tokens >= 0) return tokens;
  throw misuse(`limitRate(): 'count' must give a number of at least 0, not ${tokens}.`);
};

const full = (maxQueue: number): MillraceError =>
  new MillraceError(
    'queueFull',
    `${maxQueue} requests wait already ('maxQueue') for the limits of this minute. Try again when some have gone.`,
    { retryable: true },
  );

const rules: Readonly<Record<keyof LimitRateOptions, Rule>> = {
  requestsPerMinute: isPositive,
  tokensPerMinute: isPositive,
  maxQueue: wholeNumber(0),
  count: isFunction,
  countUsage: isFunction,
};

interface Bill {
  /** Reads what a chunk says of it. */
  read(chunk: ModelChunk): void;
  /** What it has cost: as reported once the answer is whole, and else at least what was reserved. */
  readonly tokens: number;
}

/** Opens the bill of one answer. Attempts that were void have cost what they said. */
const openBill = (reserved: number, countUsage: (usage: Usage) => number): Bill => {
  let before = noUsage;
  let usage: Usage | undefined;
  let reported = 0;
  let isWhole = false;
  return {
    read: (chunk) => {
      switch (chunk.type) {
        case 'usage':
          usage = updatedUsage(usage ?? noUsage, chunk.usage);
          reported = countUsage(addUsage(before, usage));
          break;
        case 'restart':
          before = addUsage(before, usage ?? noUsage);
          usage = undefined;
          isWhole = false;
          break;
        case 'finish':
          isWhole = true;
          break;
        default:
      }
    },
    get tokens() {
      if (!Number.isFinite(reported) || reported < 0) return reserved;
      return isWhole && usage !== undefined ? reported : Math.max(reserved, reported);
    },
  };
};

/** The clocks of all who share a limit. There is mostly one; of several, one may stand still. */
interface Clocks {
  /** The time in milliseconds when, and by whose clock, one was read last: one has come, gone or rung. */
  readonly now: number;
  read(scheduler: SchedulerLike): number;
  /** Whoever subscribes is there until it unsubscribes. When the last one of a scheduler goes, so does its timer. */
  during$<T>(scheduler: SchedulerLike, source$: Observable<T>): Observable<T>;
  /** Rings in at most so many milliseconds, by the clock of each who is there. Whoever still waits sets it again. */
  ringIn(ms: number): void;
}

interface Clock {
  present: number;
  ringing: { readonly at: number; readonly timer: Subscription } | undefined;
}

/** A longer wait would be over at once. */
const longestWait = 2 ** 31 - 1;

const createClocks = (ring: () => void): Clocks => {
  const clocks = new Map<SchedulerLike, Clock>();
  let now = 0;
  const read = (scheduler: SchedulerLike): number => {
    now = scheduler.now();
    return now;
  };
  const come = (scheduler: SchedulerLike): Clock => {
    read(scheduler);
    const clock = clocks.get(scheduler) ?? { present: 0, ringing: undefined };
    clock.present += 1;
    clocks.set(scheduler, clock);
    return clock;
  };
  const go = (scheduler: SchedulerLike, clock: Clock): void => {
    read(scheduler);
    clock.present -= 1;
    if (clock.present > 0) return;
    clock.ringing?.timer.unsubscribe();
    clocks.delete(scheduler);
  };
  return {
    get now() {
      return now;
    },
    read,
    during$: (scheduler, source$) =>
      new Observable((subscriber) => {
        const clock = come(scheduler);
        subscriber.add(() => go(scheduler, clock));
        source$.subscribe(subscriber);
      }),
    ringIn: (ms) => {
      const delay = Math.min(ms, longestWait);
      clocks.forEach((clock, scheduler) => {
        const at = scheduler.now() + delay;
        if (clock.ringing !== undefined && clock.ringing.at <= at) return;
        clock.ringing?.timer.unsubscribe();
        const timer = scheduler.schedule(() => {
          clock.ringing = undefined;
          read(scheduler);
          ring();
        }, delay);
        clock.ringing = { at, timer };
      });
    },
  };
};

/** Estimates what a request may cost: all that it says, and the whole answer that it allows. */
const requestTokens = (request: ModelRequest): number =>
  countRequest(plainCounter, request) + (request.maxTokens ?? 0);
