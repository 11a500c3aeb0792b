import { checkOptions, isFlag, isText, listOf, type Rule } from '../options.js';
import type { ToolGroup, ToolGroupDefinition } from './types.js';

/** Groups tools, so that a session need not show all of them to the model all the time. */
export const toolGroup = (definition: ToolGroupDefinition): ToolGroup => {
  checkOptions('toolGroup()', definition, rules, ['name', 'description', 'tools']);
  const { name, description, tools, active = false, managed = true } = definition;
  return Object.freeze({ name, description, tools: Object.freeze([...tools]), active, managed });
};

const rules: Readonly<Record<keyof ToolGroupDefinition, Rule>> = {
  name: isText,
  description: isText,
  tools: listOf('tools'),
  active: isFlag,
  managed: isFlag,
};
