import type { AgentOptions } from './agent.js';
import type { Layer } from './layer.js';
import type { InputSchema } from './schema.js';
import { namesOf } from './toolkit.js';
import type { ToolEntry } from './tools/types.js';

/** Gives an agent tools that it always has, behind those that it has already: whatever `selectTools` picks. */
export const withOwnTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  own: readonly ToolEntry[],
): AgentOptions<Output> => {
  const { tools = [], use = [] } = options;
  return {
    ...options,
    tools: [...tools, ...own],
    use: [...use, pinning(namesOf(own))],
  };
};

const pinning = (names: readonly string[]): Layer => ({
  name: 'pinnedTools',
  priority: 89,
  call: () => (next) => (call) => next({ ...call, pinned: [...call.pinned, ...names] }),
});
