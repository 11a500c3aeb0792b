import type { AgentOptions } from '../agent-options.js';
import { withDefaults } from '../call-options.js';
import type { InputSchema } from '../schema.js';
import type { DialectOptions } from '../text-tools/dialect.js';
import { actionDialect } from '../text-tools/dialects/action.js';
import { textTools } from '../text-tools/text-tools.js';

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
  defaults: withDefaults(
    {
      request: { temperature: 0.7, maxTokens: 8_000 },
      limits: { maxParseRetries: 2, parseBackoffMs: 800, maxToolErrors: 2, toolBackoffMs: 800 },
    },
    options.defaults,
  ),
});
