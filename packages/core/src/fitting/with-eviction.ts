import type { AgentOptions } from '../agent.js';
import type { InputSchema } from '../schema.js';
import { evictResults, type EvictionOptions, readResultName } from './evict-results.js';
import { readResult } from './read-result.js';

/** An agent that puts old large results of its tools away, and has the tool to read them again: `createAgent(withEviction({ model, tools }))`. */
export const withEviction = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  eviction: EvictionOptions = {},
): AgentOptions<Output> => {
  const { tools = [], interceptors = [], defaults = {} } = options;
  const { toolSelection } = defaults;
  const reader = readResult();
  return {
    ...options,
    tools: [...tools, reader],
    interceptors: [...interceptors, evictResults(eviction)],
    defaults: {
      ...defaults,
      ...(defaults.tools !== undefined && { tools: [...defaults.tools, reader] }),
      ...(toolSelection !== undefined && {
        toolSelection: {
          ...toolSelection,
          pinned: [...(toolSelection.pinned ?? []), readResultName],
        },
      }),
    },
  };
};
