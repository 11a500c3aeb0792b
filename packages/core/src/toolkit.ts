import { misuse } from './errors.js';
import { isRecord } from './json.js';
import type { ToolChoice, ToolDeclaration } from './model.js';
import type { Tool, ToolEntry, ToolGroup } from './tools/types.js';

/** The tools there are at one time, each under a name of its own. It never changes: what changes it makes another. */
export interface Toolkit {
  /** As they were given, with the groups that are not active. */
  readonly entries: readonly ToolEntry[];
  /** Those that can be used. */
  readonly tools: readonly Tool[];
  readonly names: readonly string[];
  readonly declarations: readonly ToolDeclaration[];
  readonly groups: readonly ToolGroup[];
  /** What of the tools' schemas is not held to. */
  readonly warnings: readonly string[];
  find(name: string): Tool | undefined;
}

/** Gathers tools; two of one name are an error, also where one of them cannot be used now. */
export const createToolkit = (entries: readonly ToolEntry[]): Toolkit => {
  const groups = entries.filter(isToolGroup);
  const managed = groups.filter((group) => group.managed);
  const manager = managed[0]?.manager;
  const all = entries.flatMap((entry) => (isToolGroup(entry) ? entry.tools : [entry]));
  const own = manager === undefined ? [] : [manager(managed)];
  refuseRepeats([...all, ...own], groups);
  const tools = [
    ...entries.flatMap((entry) =>
      isToolGroup(entry) ? (entry.active ? entry.tools : []) : [entry],
    ),
    ...own,
  ];
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    entries: Object.freeze([...entries]),
    groups,
    tools: Object.freeze(tools),
    names: [...byName.keys()],
    declarations: tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema,
    })),
    warnings: all.flatMap(({ warnings = [] }) => warnings),
    find: (name) => byName.get(name),
  };
};

const refuseRepeats = (tools: readonly Tool[], groups: readonly ToolGroup[]): void => {
  if (!tools.every(isTool)) {
    throw misuse(
      `'tools' takes what tool({ name, description, input, run }) and toolGroup({ name, description, tools }) return.`,
    );
  }
  const tool = repeatIn(tools.map(({ name }) => name));
  if (tool !== undefined) {
    throw misuse(`Two tools are named '${tool}'. Rename one of them, or drop it.`);
  }
  const both = groups.find(({ name }) => tools.some((it) => it.name === name));
  if (both !== undefined) {
    throw misuse(`A tool and a group of tools are named '${both.name}'. Rename one of them.`);
  }
  const group = repeatIn(groups.map(({ name }) => name));
  if (group !== undefined) {
    throw misuse(`Two groups of tools are named '${group}'. Rename one of them, or join them.`);
  }
};

const repeatIn = (names: readonly string[]): string | undefined => {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
};

/** No model can be made to use a tool that it is not told of. */
export const refuseUnknownChoice = (
  toolChoice: ToolChoice | undefined,
  { names }: Toolkit,
): void => {
  if (typeof toolChoice !== 'object' || names.includes(toolChoice.name)) return;
  throw misuse(
    `'toolChoice' names the tool '${toolChoice.name}'. The tools are: ${names.join(', ') || 'none'}.`,
  );
};

export const isToolGroup = (value: unknown): value is ToolGroup =>
  typeof value === 'object' && value !== null && 'tools' in value && !('run$' in value);

const isTool = (value: unknown): value is Tool =>
  isRecord(value) && typeof value['name'] === 'string' && typeof value['run$'] === 'function';
