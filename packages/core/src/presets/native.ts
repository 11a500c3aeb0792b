import type { AgentOptions } from '../agent-options.js';
import { withDefaults } from '../call-options.js';
import type { InputSchema } from '../schema.js';

/** An agent of a model that has tools of its own: 10 iterations, 5 tools at once. It says what `createAgent` does by itself. */
export const native = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): AgentOptions<Output> => ({
  ...options,
  defaults: withDefaults({ limits: { maxIterations: 10, parallel: true } }, options.defaults),
});
