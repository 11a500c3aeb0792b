import { map } from 'rxjs';
import type { AgentOptions } from '../../agent.js';
import { withDefaults } from '../../call/call-options.js';
import { fitContext } from '../fitting/fit-context.js';
import type { TokenCounter } from '../../models/count-request.js';
import { maxInputLength } from '../guards/lists.js';
import { type Interceptor, isInterceptor, on } from '../../seams/interceptor.js';
import { isRecord } from '../../values/json.js';
import type { LimitOptions } from '../../flow/deadline.js';
import { inputAndAnswer, throughMemory, windowMemory } from '../../memories/window-memory.js';
import { retry, type RetryOptions } from '../../models/retry.js';
import { checkOptions, having, isObject, type Rule, wholeNumber } from '../../values/options.js';
import { withoutPhase } from '../../phases/phase-list.js';
import { storeMemory } from '../../phases/limit.js';
import { retrieve, type RetrieveOptions } from '../retrieval/retrieve.js';
import type { Retriever } from '../retrieval/retriever.js';
import type { InputSchema } from '../../values/schema.js';
import { actionDialect, type DialectOptions, flatDialect } from '../text-tools/dialects.js';
import { textTools } from '../text-tools/text-tools.js';
import { selectTools } from '../select-tools.js';
import { createSemaphore, limitCalls, type Semaphore } from '../traffic/limit-concurrency.js';

/** An agent of a model that has tools of its own: 10 iterations, 5 tools at once. It says what `createAgent` does by itself. */
export const native = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): AgentOptions<Output> => ({
  ...options,
  ...withDefaults({ limits: { maxIterations: 10, parallel: true } }, options),
});

/**
 * Options of an agent whose model has no tools of its own, in the dialect `action`: a thought, then one action as JSON. Temperature 0.7, 8,000 tokens a message, one tool per turn, two corrections and two tool failures in a row, each after 0.8 s times their number. Your options take precedence.
 */
export const action = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  dialect: DialectOptions = {},
): AgentOptions<Output> => ({
  ...options,
  model: textTools(options.model, actionDialect(dialect)),
  ...withDefaults(
    {
      request: { temperature: 0.7, maxTokens: 8_000 },
      limits: { maxParseRetries: 2, parseBackoffMs: 800, maxToolErrors: 2, toolBackoffMs: 800 },
    },
    options,
  ),
});

/**
 * Options of an agent of any model, in the dialect `flat`: each answer is one JSON object. 10 iterations; temperature 0.7, plus 0.2 for each unreadable answer; tool results up to 500 characters; the closing request at temperature 0, and a `maxIterations` error if it is empty. Your options take precedence.
 */
export const flat = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  dialect: DialectOptions = {},
): AgentOptions<Output> => ({
  ...options,
  model: textTools(options.model, flatDialect(dialect)),
  use: [calmAtTheEnd, ...(options.use ?? [])],
  ...withDefaults({ request: { temperature: 0.7 }, limits: flatLimits }, options),
});

const flatLimits: LimitOptions = {
  maxIterations: 10,
  temperatureRamp: { step: 0.2, max: 1.5 },
  maxObservation: 500,
};

/** Before the interceptors of the agent's own, which may say otherwise. */
const calmAtTheEnd = on(
  'preSummary',
  map((event) => ({ ...event, options: { ...event.options, temperature: 0 } })),
  { name: 'flat', priority: 0 },
);

/** What may be otherwise in an agent that is let out to users. */
export interface GuardedOptions {
  /** What inputs have to pass, instead of the default: at most 32,000 characters and 20 MB of media. */
  readonly guards?: readonly (Interceptor | readonly Interceptor[])[];
  /** Calls at once. Default: 20. */
  readonly maxCalls?: number;
  /** Calls that may wait for that; one more errors with `queueFull`. Default: 100. */
  readonly maxQueue?: number;
  /** Limits calls instead: a semaphore of `createSemaphore`, which other agents share. */
  readonly calls?: Semaphore;
  /** Turns of history that are shown; `Infinity`, where the memory shows what it should. Default: 10. */
  readonly turns?: number;
  /** Tokens that the model can take. Default: 128,000. */
  readonly contextWindow?: number;
  /** Tokens of these that are kept for the answer. Default: 4,096. */
  readonly reserve?: number;
  readonly counter?: TokenCounter;
  /** How requests are sent again; `false` leaves that to the model. It goes before a `retry` around the model. Default: as `retry` does. */
  readonly retry?: RetryOptions | false;
  /** Where calls look for what they need to know. Default: nowhere. */
  readonly retriever?: Retriever;
  /** How they do. */
  readonly retrieve?: RetrieveOptions;
}

/**
 * Options of a user-facing agent: guards; 20 calls at once, others wait; 30 s a call and 15 s a tool; 10 tool runs; a context window of
 * 128,000 tokens, 4,096 of them for the answer; retries; the last 10 turns of memory; passages of the retriever; 20 tools shown at
 * most. Your options take precedence. Create it once: its limits are its own.
 */
export const guarded = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  limits: GuardedOptions = {},
): AgentOptions<Output> => {
  checkOptions('guarded()', limits, rules);
  const { maxCalls = 20, maxQueue = 100, turns = 10, retriever } = limits;
  const { guards = [maxInputLength({ characters: 32_000, mediaBytes: 20_000_000 })] } = limits;
  const { contextWindow = 128_000, reserve = 4_096, counter } = limits;
  const { calls = createSemaphore({ max: maxCalls, maxQueue, what: 'calls' }) } = limits;
  const timeouts = { callMs: 30_000, toolMs: 15_000 };
  const limited = { maxIterations: 15, maxToolCalls: 10, timeouts };
  return {
    ...options,
    ...withDefaults({ limits: limited }, options),
    model: limits.retry === false ? options.model : retry(options.model, limits.retry),
    use: [
      guards.flat(),
      fitContext({ contextWindow, reserve, ...(counter === undefined ? {} : { counter }) }),
      limitCalls(calls),
      throughMemory('guardedMemory', (memory) =>
        turns === Infinity
          ? inputAndAnswer(memory)
          : windowMemory(inputAndAnswer(memory), { turns }),
      ),
      ...(retriever === undefined ? [] : [retrieve(retriever, limits.retrieve)]),
      selectTools({ maxTools: 20 }),
      ...(options.use ?? []),
      // Memory is written at the end, and only then.
      withoutPhase(storeMemory),
    ],
  };
};

const rules: Readonly<Record<keyof GuardedOptions, Rule>> = {
  guards: [
    (value) => Array.isArray(value) && value.flat().every(isInterceptor),
    'a list of guards, such as guardInput() makes',
  ],
  calls: having('hold$', 'a semaphore of createSemaphore()'),
  maxCalls: wholeNumber(1),
  maxQueue: wholeNumber(0),
  turns: [
    (value) => value === Infinity || wholeNumber(1)[0](value),
    'a whole number of at least 1, or Infinity',
  ],
  contextWindow: wholeNumber(1),
  reserve: wholeNumber(0),
  counter: having('count', 'a TokenCounter'),
  retry: [(value) => value === false || isRecord(value), 'options of retry(), or false'],
  retriever: having('retrieve$', 'a Retriever'),
  retrieve: isObject,
};
