import type { Tool } from 'millrace';
import { isRecord } from 'millrace/values';
import { didYouMean } from './did-you-mean.js';
import type { FlowComponents } from './document.js';
import { type Finding, problemAt } from './problem.js';
import { allComponents } from './template-problems.js';

type Given = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];

/** Unknown and missing keys in the input of tool components. Values come from templates, so they are not checked. */
export const toolInputProblems = (
  components: FlowComponents,
  tools: readonly Tool[],
): readonly Finding[] =>
  allComponents(components).flatMap(({ component, path }) => {
    if (component.component_name !== 'tool') return [];
    const { tool: name, input = {} } = component.params;
    const tool = tools.find((it) => it.name === name);
    if (tool === undefined) return [];
    const at = [...path, 'params', 'input'];
    return [...unknownKeys(input, tool, at), ...missingKeys(input, tool, at)];
  });

/** Keywords that may allow keys beyond `properties`. */
const opening = ['patternProperties', '$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if'];

const unknownKeys = (input: Given, tool: Tool, at: Path): readonly Finding[] => {
  const schema: Given = { ...tool.inputSchema };
  const { properties, additionalProperties = false } = schema;
  const isOpen = additionalProperties !== false || opening.some((key) => key in schema);
  if (isOpen || !isRecord(properties)) return [];
  const known = Object.keys(properties);
  const set = [...(tool.hidden ?? []), ...(tool.accepts ?? [])];
  // A schema without any keys does not define what it accepts.
  if (known.length === 0 && set.length === 0) return [];
  return Object.keys(input)
    .filter((key) => !known.includes(key) && !set.includes(key))
    .map((key) =>
      problemAt([...at, key], `is not a parameter of '${tool.name}'`, () =>
        didYouMean(key, known, 'parameters'),
      ),
    );
};

const missingKeys = (input: Given, tool: Tool, at: Path): readonly Finding[] => {
  const { required }: Given = { ...tool.inputSchema };
  if (!Array.isArray(required)) return [];
  return required
    .map(String)
    .filter((key) => !Object.hasOwn(input, key) && tool.hidden?.includes(key) !== true)
    .map((key) => problemAt([...at, key], `is missing: '${tool.name}' needs it`));
};
