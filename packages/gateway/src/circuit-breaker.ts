import {
  aroundModel,
  hasContent,
  isMillraceError,
  MillraceError,
  type Model,
  type ModelChunk,
  timeouts,
} from 'millrace';
import {
  checkOptions,
  type Complete,
  defined,
  isFunction,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  defer,
  finalize,
  type MonoTypeOperatorFunction,
  type Observable,
  Subject,
  tap,
} from 'rxjs';
import { isDuration, isModel, isShare } from './model-parts.js';

/** When a circuit opens, and when it closes again. */
export interface CircuitBreakerOptions {
  /** The share of failed requests at which the circuit opens, above 0 and up to 1. Default: 0.5. */
  readonly failureShare?: number | undefined;
  /** Requests in the window below which it stays closed. Default: 10. */
  readonly minRequests?: number | undefined;
  /** The length of the window over which requests count, in milliseconds. Default: 60,000. */
  readonly windowMs?: number | undefined;
  /** How long an open circuit refuses all requests, in milliseconds. Default: 30,000. */
  readonly openMs?: number | undefined;
  /** Requests let through when that time is over. All of them must succeed to close the circuit. Default: 1. */
  readonly probes?: number | undefined;
  /** Which errors are failures of the provider. Default: retryable ones, except `queueFull`. */
  readonly isFailure?: ((error: MillraceError) => boolean) | undefined;
}

/** `closed` lets requests through, `open` refuses them, `halfOpen` lets a few through to see whether they succeed. */
export type CircuitState = 'closed' | 'open' | 'halfOpen';

/** A change of the state of a circuit. */
export interface CircuitChange {
  /** The name of the model. */
  readonly model: string;
  readonly state: CircuitState;
  /** Requests in the window when it opened, and how many of them failed. 0 for other changes. */
  readonly requests: number;
  readonly failures: number;
  /** When an open circuit lets the next request through, in milliseconds since the epoch. */
  readonly retryAt?: number;
}

/** Wraps models in circuits: one per model name, shared by all models and agents that use the same breaker. */
export interface CircuitBreaker {
  (model: Model): Model;
  /** The changes of all circuits, from now on. Hot; never completes. */
  readonly changes$: Observable<CircuitChange>;
  /** The state of the circuit of a model. `now` is the time, in milliseconds since the epoch. Default: that of `Date`. */
  readonly stateOf: (model: Pick<Model, 'name'>, now?: number) => CircuitState;
}

/**
 * Stops asking a provider that fails: `const breaker = circuitBreaker()`, then `model: fallback(breaker(openai('…')),
 * breaker(anthropic('…')))`. Once enough requests of the window have failed, the circuit opens: requests error at once
 * with `server`, which is retryable, so `fallback` asks the next model. After `openMs`, a few requests are let through;
 * if they succeed, the circuit closes, and if one fails, it opens again. It keeps no timers: time passes when a request
 * comes.
 *
 * Cancelled requests, errors that are not retryable, and streams without a finish count as neither success nor failure. Put it around `retry`, as in
 * `breaker(retry(model))`, so that a request counts once and a refused one is not repeated. In `retry(breaker(model))`, each attempt
 * counts, and `retry` waits until the circuit lets a request through.
 *
 * @example
 * ```ts
 * const breaker = circuitBreaker({ failureShare: 0.3, openMs: 10_000 });
 * breaker.changes$.subscribe(({ model, state }) => console.log(model, state));
 * const agent = createAgent({ model: fallback(breaker(main), spare) });
 * ```
 */
export const circuitBreaker = (options: CircuitBreakerOptions = {}): CircuitBreaker => {
  checkOptions('circuitBreaker()', options, rules);
  const policy: Policy = { ...defaults, ...defined(options) };
  const circuits = new Map<string, Circuit>();
  const changes$ = new Subject<CircuitChange>();
  const circuitOf = (model: string): Circuit => circuits.get(model) ?? closed;
  const turnTo = (model: string, next: Circuit, change = unchanged): void => {
    const before = circuitOf(model);
    circuits.set(model, next);
    if (before.state === next.state) return;
    const { state } = next;
    const retryAt = state === 'open' ? { retryAt: next.until } : {};
    changes$.next({ model, state, ...change, ...retryAt });
  };
  const admit = (model: string, now: number): Circuit => {
    const circuit = admitting(circuitOf(model), model, now, policy);
    turnTo(model, circuit);
    return circuit;
  };
  const settle = (model: string, admitted: Circuit, outcome: Outcome, now: number): void => {
    const circuit = circuitOf(model);
    // A request of an earlier state says nothing about this one.
    if (circuit.epoch !== admitted.epoch) return;
    turnTo(model, ...settled(circuit, outcome, now, policy));
  };

  const wrap = (model: Model): Model => {
    const [accepts, what] = isModel;
    if (!accepts(model)) throw new MillraceError('config', `circuitBreaker() wraps ${what}.`);
    const timed = timeouts(model);
    const { name } = timed;
    return aroundModel(timed, (request, context) =>
      defer(() => {
        const now = (): number => context.scheduler.now();
        const admitted = admit(name, now());
        return defer(() => timed.stream$(request, context)).pipe(
          // A reader that pauses must not keep the circuit half open.
          observeOutcome(policy, admitted.state === 'halfOpen', (outcome) =>
            settle(name, admitted, outcome, now()),
          ),
        );
      }),
    );
  };
  const stateOf: CircuitBreaker['stateOf'] = ({ name }, now = Date.now()) => {
    const circuit = circuitOf(name);
    return circuit.state === 'open' && !isWaiting(circuit, now, policy)
      ? 'halfOpen'
      : circuit.state;
  };
  return Object.assign(wrap, { changes$: changes$.asObservable(), stateOf });
};

/** Whether an open circuit refuses all requests. If the clock was set back, it lets the next one through. */
const isWaiting = (
  { until }: { readonly until: number },
  now: number,
  { openMs }: Pick<Policy, 'openMs'>,
): boolean => now < until && until - now <= openMs;

/** The circuit with one more request. Throws if it lets none through. */
const admitting = (circuit: Circuit, model: string, now: number, policy: Policy): Circuit => {
  if (circuit.state === 'closed') return circuit;
  if (circuit.state === 'open' && isWaiting(circuit, now, policy)) {
    throw refused(model, circuit.until - now);
  }
  const probing = circuit.state === 'open' ? { ...untried, epoch: {} } : circuit;
  if (probing.pending + probing.passed >= policy.probes) throw busy(model);
  return { ...probing, pending: probing.pending + 1 };
};

/** The circuit after the outcome of one of its requests, and the counts that opened it. */
const settled = (
  circuit: Circuit,
  outcome: Outcome,
  now: number,
  policy: Policy,
): readonly [Circuit, typeof unchanged?] => {
  if (circuit.state === 'closed' && outcome !== 'cancelled') {
    const counts = counted(circuit.counts, outcome === 'failed', now, policy.windowMs);
    const total = sumOf(counts);
    return isTripped(total, policy)
      ? [openUntil(now + policy.openMs), total]
      : [{ ...circuit, counts }];
  }
  if (circuit.state === 'halfOpen') {
    const pending = circuit.pending - 1;
    const passed = circuit.passed + (outcome === 'passed' ? 1 : 0);
    if (outcome === 'failed') return [openUntil(now + policy.openMs)];
    return [passed >= policy.probes ? { ...closed, epoch: {} } : { ...circuit, pending, passed }];
  }
  return [circuit];
};

/** Reports the outcome of a request once: at its finish, or that of a probe at its first content. */
const observeOutcome = (
  policy: Policy,
  isProbe: boolean,
  settle: (outcome: Outcome) => void,
): MonoTypeOperatorFunction<ModelChunk> => {
  let isSettled = false;
  const end = (outcome: Outcome): void => {
    if (isSettled) return;
    isSettled = true;
    settle(outcome);
  };
  return (source) =>
    source.pipe(
      tap({
        next: (chunk) => {
          if (chunk.type === 'finish' || (isProbe && hasContent(chunk))) end('passed');
        },
        complete: () => end('cancelled'),
        error: (error: unknown) => end(isFailure(error, policy) ? 'failed' : 'cancelled'),
      }),
      // Also if `isFailure` throws: a probe without an end would keep the circuit half open.
      finalize(() => end('cancelled')),
    );
};

type Policy = Complete<CircuitBreakerOptions>;

type Outcome = 'passed' | 'failed' | 'cancelled';

/** A circuit; requests count only in the `epoch` in which they began. */
type Circuit =
  | { readonly state: 'closed'; readonly epoch: object; readonly counts: readonly Count[] }
  | { readonly state: 'open'; readonly epoch: object; readonly until: number }
  | {
      readonly state: 'halfOpen';
      readonly epoch: object;
      /** Probes under way, and probes that succeeded. */
      readonly pending: number;
      readonly passed: number;
    };

/** Requests of one slice of the window. */
interface Count {
  readonly slice: number;
  readonly requests: number;
  readonly failures: number;
}

const slices = 10;

const unchanged = { requests: 0, failures: 0 };

const closed: Circuit = { state: 'closed', epoch: {}, counts: [] };

const untried = { state: 'halfOpen', pending: 0, passed: 0 } as const;

const openUntil = (until: number): Circuit => ({ state: 'open', epoch: {}, until });

/** Counts a request in the slice of `now`, and drops the slices that have left the window. */
const counted = (
  counts: readonly Count[],
  hasFailed: boolean,
  now: number,
  windowMs: number,
): readonly Count[] => {
  const slice = Math.floor((now * slices) / windowMs);
  const last = counts.at(-1);
  const failures = hasFailed ? 1 : 0;
  if (last?.slice === slice) {
    const more = { slice, requests: last.requests + 1, failures: last.failures + failures };
    return [...counts.slice(0, -1), more];
  }
  // After `slice` are those of a clock that was set back.
  const kept = counts.filter((it) => it.slice > slice - slices && it.slice < slice);
  return [...kept, { slice, requests: 1, failures }];
};

const sumOf = (counts: readonly Count[]): typeof unchanged =>
  counts.reduce(
    (sum, { requests, failures }) => ({
      requests: sum.requests + requests,
      failures: sum.failures + failures,
    }),
    unchanged,
  );

const isTripped = (
  { requests, failures }: typeof unchanged,
  { minRequests, failureShare }: Policy,
): boolean => requests >= minRequests && failures > 0 && failures / requests >= failureShare;

const isFailure = (error: unknown, policy: Policy): boolean =>
  isMillraceError(error) && !refusals.has(error) && policy.isFailure(error);

/** Refusals of breakers: an outer breaker does not count them as failures of the provider. */
const refusals = new WeakSet<object>();

type MillraceErrorOptions = ConstructorParameters<typeof MillraceError>[2];

const refusal = (message: string, details?: MillraceErrorOptions): MillraceError => {
  const error = new MillraceError('server', message, details);
  refusals.add(error);
  return error;
};

const refused = (model: string, waitMs: number): MillraceError =>
  refusal(
    `The model '${model}' was not asked: too many of its requests have failed. The next attempt is possible in ${waitMs} ms. Use fallback() to ask another model until then, or change 'failureShare' or 'openMs' of circuitBreaker().`,
    { retryAfterMs: waitMs },
  );

const busy = (model: string): MillraceError =>
  refusal(
    `The model '${model}' was not asked: after failures, a first request is under way to see whether it answers again. Try again when it has ended, or use fallback() to ask another model until then.`,
  );

const defaults: Policy = {
  failureShare: 0.5,
  minRequests: 10,
  windowMs: 60_000,
  openMs: 30_000,
  probes: 1,
  isFailure: ({ retryable, code }) => retryable && code !== 'queueFull',
};

const rules: Readonly<Record<keyof CircuitBreakerOptions, Rule>> = {
  failureShare: isShare,
  minRequests: wholeNumber(1),
  windowMs: isDuration,
  openMs: isDuration,
  probes: wholeNumber(1),
  isFailure: isFunction,
};
