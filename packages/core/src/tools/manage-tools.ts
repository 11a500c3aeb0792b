import { tool } from '../tool.js';
import type { Tool, ToolGroup } from './types.js';

/** The tool by which a model activates and deactivates groups of tools. */
export const manageTools = (groups: readonly ToolGroup[]): Tool => {
  const names = { type: 'array', items: { enum: groups.map(({ name }) => name) } } as const;
  const list = groups.map(({ name, description }) => `- ${name}: ${description}`);
  return tool({
    name: 'manage_tools',
    idempotent: true,
    description: `Activates and deactivates groups of tools. From your next step on, you have the tools of those that are active. The groups are:\n${list.join('\n')}`,
    input: { type: 'object', properties: { activate: names, deactivate: names } },
    exclusive: true,
    run: ({ activate = [], deactivate = [] }, { toolkit }) => {
      toolkit.deactivate(...deactivate);
      toolkit.activate(...activate);
      const active = toolkit.groups
        .filter((group) => group.managed && group.active)
        .map(({ name }) => name);
      return `Active groups: ${active.join(', ') || 'none'}.`;
    },
  });
};
