import type { AgentOptions } from './agent-options.js';
import type { InputSchema } from './schema.js';
import { namesOf } from './tools/live-toolkit.js';
import type { ToolEntry } from './tools/types.js';

/**
 * Gives an agent tools that it always has, behind those that it has already: also in calls whose tools its defaults name, and whatever a
 * selection in its defaults picks. What one call says of its tools goes before that.
 */
export const withOwnTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  own: readonly ToolEntry[],
): AgentOptions<Output> => {
  const { tools = [], defaults = {} } = options;
  const { toolSelection } = defaults;
  return {
    ...options,
    tools: [...tools, ...own],
    defaults: {
      ...defaults,
      ...(defaults.tools !== undefined && { tools: [...defaults.tools, ...own] }),
      ...(toolSelection !== undefined && {
        toolSelection: {
          ...toolSelection,
          pinned: [...(toolSelection.pinned ?? []), ...namesOf(own)],
        },
      }),
    },
  };
};
