import type { AgentOptions } from '../agent-options.js';
import type { InputSchema } from '../schema.js';
import { withOwnTools } from '../with-own-tools.js';
import { evictResults, type EvictionOptions } from './evict-results.js';
import { readResult } from './read-result.js';

/** An agent that puts old large results of its tools away, and has the tool to read them again: `createAgent(withEviction({ model, tools }))`. */
export const withEviction = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
  eviction: EvictionOptions = {},
): AgentOptions<Output> => {
  const { interceptors = [] } = options;
  return {
    ...withOwnTools(options, [readResult()]),
    interceptors: [...interceptors, evictResults(eviction)],
  };
};
