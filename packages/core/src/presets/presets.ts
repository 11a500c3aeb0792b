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
 * An agent of a model without tools of its own, in the dialect `action`: a thought, then one action as JSON. Temperature 0.7; 8,000 tokens a
 * message; one tool a step; two repairs of an action and two failures of a tool, each after 0.8 s times their number. What the options say
 * goes before that.
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
 * An agent of any model at all, in the dialect `flat`: each reply is one JSON object. 10 steps; a temperature of 0.7 that rises by 0.2 with each
 * text in which no action can be read; observations of 500 characters; the closing attempt at temperature 0, and a `maxIterations` error where it says
 * nothing. What the options say goes before that.
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
