import { of } from 'rxjs';
import { checkOptions, isFlag, isFunction, isText, listOf, type Rule } from '../values/options.js';
import { isRecord } from '../values/json.js';
import type { Validator } from '../values/schema.js';
import { tool } from './tool.js';
import type { RunsOf, Tool, ToolGroup, ToolGroupDefinition } from './types.js';

/** Groups tools: the model only sees the tools of active groups. */
export const toolGroup = <const Tools extends readonly Tool[]>(
  definition: ToolGroupDefinition<Tools>,
): ToolGroup<RunsOf<Tools>> => {
  checkOptions('toolGroup()', definition, rules, ['name', 'description', 'tools']);
  const { name, description, tools, active = false, managed = true } = definition;
  const group = { name, description, tools: Object.freeze([...tools]), active, managed };
  return Object.freeze(managed ? { ...group, manager: manageTools } : group);
};

const rules: Readonly<Record<Exclude<keyof ToolGroup, 'runs'>, Rule>> = {
  name: isText,
  description: isText,
  tools: listOf('tools'),
  active: isFlag,
  managed: isFlag,
  manager: isFunction,
};

const manageTools = (groups: readonly ToolGroup[]): Tool => {
  const list = groups.map(({ name, description }) => `- ${name}: ${description}`);
  return tool({
    name: 'manage_tools',
    idempotent: true,
    description: `Activates and deactivates groups of tools. From your next step on, you have the tools of those that are active. The groups are:\n${list.join('\n')}`,
    input: changesTo(groups.map(({ name }) => name)),
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

/** Names of groups to activate and deactivate. Checked by hand: it saves loading a JSON Schema validator. */
const changesTo = (
  known: readonly string[],
): Validator<Partial<Record<'activate' | 'deactivate', readonly string[]>>> => {
  const names = { type: 'array', items: { enum: known } };
  const isKnown = (name: unknown): boolean => known.some((it) => it === name);
  return {
    jsonSchema: { type: 'object', properties: { activate: names, deactivate: names } },
    validation$: (input) => {
      const { activate = [], deactivate = [] } = isRecord(input) ? input : {};
      const value = { activate, deactivate };
      const problems = Object.entries(value)
        .filter(([, list]) => !(Array.isArray(list) && list.every(isKnown)))
        .map(([key]) => `${key}: must be a list of these names: ${known.join(', ')}`);
      return of(
        problems.length === 0 ? { valid: true, value, input: value } : { valid: false, problems },
      );
    },
  };
};
