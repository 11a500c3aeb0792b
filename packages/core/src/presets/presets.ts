import { map } from 'rxjs';
import type { AgentOptions } from '../agent-options.js';
import { withDefaults } from '../call-options.js';
import { on } from '../interceptor.js';
import type { LimitOptions } from '../limits.js';
import type { InputSchema } from '../schema.js';
import { actionDialect, type DialectOptions, flatDialect } from '../text-tools/dialects.js';
import { textTools } from '../text-tools/text-tools.js';

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
