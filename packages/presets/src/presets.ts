import {
  type AgentOptions,
  type InputSchema,
  type Interceptor,
  on,
  retry,
  selectTools,
} from 'millrace';
import { fitContext, type TokenCounter } from 'millrace/fitting';
import { maxInputLength } from 'millrace/guards';
import { inputAndAnswer, windowMemory, wrapMemory } from 'millrace/memories';
import { storeMemory, withoutPhase } from 'millrace/phases';
import { retrieve, type Retriever } from 'millrace/retrieval';
import { actionDialect, flatDialect, textTools } from '@millrace/text-tools';
import { createSemaphore, limitCalls, type Semaphore } from 'millrace/traffic';
import {
  checkOptions,
  defined,
  having,
  isObject,
  isRecord,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { map } from 'rxjs';

/** Options of an agent with native tool calling: 10 iterations, 5 tools in parallel. Same as `createAgent`. */
export const native = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): AgentOptions<Output> => withDefaults(options, { limits: { maxIterations: 10, parallel: true } });

/**
 * Options of an agent whose model has no native tool calling, in the dialect `action`: a thought, then one action as
 * JSON. Temperature 0.7, 8,000 tokens per message, one tool per turn; two corrections and two tool failures in a row,
 * delayed by 0.8 s times their number. Your options take precedence.
 */
export const action = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  dialect?: Parameters<typeof actionDialect>[0],
): AgentOptions<Output> => ({
  ...withDefaults(options, {
    request: { temperature: 0.7, maxTokens: 8_000 },
    limits: { maxParseRetries: 2, parseBackoffMs: 800, maxToolErrors: 2, toolBackoffMs: 800 },
  }),
  model: textTools(options.model, actionDialect(dialect)),
});

/**
 * Options of an agent of any model, in the dialect `flat`: each answer is one JSON object. 10 iterations; temperature
 * 0.7, plus 0.2 for each unreadable answer; tool results up to 500 characters; a closing request at temperature 0, and
 * a `maxIterations` error if it is empty. Your options take precedence.
 */
export const flat = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  dialect?: Parameters<typeof flatDialect>[0],
): AgentOptions<Output> => ({
  ...withDefaults(options, {
    request: { temperature: 0.7 },
    limits: {
      maxIterations: 10,
      temperatureRamp: { step: 0.2, max: 1.5 },
      maxObservation: 500,
    },
  }),
  model: textTools(options.model, flatDialect(dialect)),
  use: [closeAtTemperatureZero, ...(options.use ?? [])],
});

/** Runs first, so your own interceptors can override it. */
const closeAtTemperatureZero = on(
  'preSummary',
  map((event) => ({ ...event, options: { ...event.options, temperature: 0 } })),
  { name: 'flat', priority: 0 },
);

export interface GuardedOptions {
  /** Guards to use instead of the default: up to 32,000 characters and 20 MB of media. */
  readonly guards?: readonly (Interceptor | readonly Interceptor[])[] | undefined;
  /** Maximum number of concurrent calls. Default: 20. */
  readonly maxCalls?: number | undefined;
  /** Maximum number of queued calls; one more errors with `queueFull`. Default: 100. */
  readonly maxQueue?: number | undefined;
  /** A semaphore from `createSemaphore` to use instead, shared with other agents. */
  readonly calls?: Semaphore | undefined;
  /** Turns of history to show; `Infinity` if the memory selects them itself. Default: 10. */
  readonly turns?: number | undefined;
  /** Size of the model's context window in tokens. Default: 128,000. */
  readonly contextWindow?: number | undefined;
  /** Tokens of it to keep free for the answer. Default: 4,096. */
  readonly reserve?: number | undefined;
  readonly counter?: TokenCounter | undefined;
  /** Options of `retry`, which takes precedence over one around the model; `false` for none. Default: its own. */
  readonly retry?: Parameters<typeof retry>[1] | false | undefined;
  readonly retriever?: Retriever | undefined;
  readonly retrieve?: Parameters<typeof retrieve>[1] | undefined;
}

/**
 * Options of a user-facing agent: guards; 20 concurrent calls, others wait; 30 s per call and 15 s per tool; 10 tool
 * calls; a context window of 128,000 tokens, 4,096 of them for the answer; retries; the last 10 turns of memory;
 * passages of the retriever; up to 20 tools shown. Yours take precedence. Create it once: each has its own limits.
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
    ...withDefaults(options, { limits: limited }),
    model: limits.retry === false ? options.model : retry(options.model, limits.retry),
    use: [
      guards.flat(),
      fitContext({ contextWindow, reserve, ...(counter === undefined ? {} : { counter }) }),
      limitCalls(calls),
      wrapMemory('guardedMemory', (memory) =>
        turns === Infinity
          ? inputAndAnswer(memory)
          : windowMemory(inputAndAnswer(memory), { turns }),
      ),
      ...(retriever === undefined ? [] : [retrieve(retriever, limits.retrieve)]),
      selectTools({ maxTools: 20 }),
      ...(options.use ?? []),
      // Memory is only written at the end.
      withoutPhase(storeMemory),
    ],
  };
};

const rules: Readonly<Record<keyof GuardedOptions, Rule>> = {
  guards: [
    (value) =>
      Array.isArray(value) && value.flat().every((it) => isRecord(it) && isRecord(it['hook'])),
    'a list of guards, such as [guardInput(…)]',
  ],
  calls: having('hold$', 'a semaphore from createSemaphore()'),
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

/** Adds defaults to the request and the limits of an agent. `undefined` counts as not set. */
export const withDefaults = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  { request, limits = {} }: Pick<AgentOptions, 'request' | 'limits'>,
): AgentOptions<Output> => ({
  ...options,
  request: { ...request, ...defined(options.request) },
  limits: {
    ...limits,
    ...defined(options.limits),
    timeouts: { ...limits.timeouts, ...defined(options.limits?.timeouts) },
  },
});
