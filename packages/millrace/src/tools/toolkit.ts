import { misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { ToolChoice, ToolDeclaration } from '../models/model.js';
import type { CallOfTool, LiveToolkit, Tool, ToolEntry, ToolGroup } from './types.js';

/** An immutable set of tools with unique names. */
export interface Toolkit {
  /** All tools and groups, including inactive ones. */
  readonly entries: readonly ToolEntry[];
  readonly tools: readonly Tool[];
  readonly names: readonly string[];
  readonly declarations: readonly ToolDeclaration[];
  readonly groups: readonly ToolGroup[];
  /** The names of tools that the model does not see. */
  readonly hidden: readonly string[];
  /** Parts of the tools' schemas that are not checked. */
  readonly warnings: readonly string[];
  find(name: string): Tool | undefined;
}

/** Creates a toolkit. Repeated names are a `config` error, even in inactive groups. */
export const createToolkit = (
  entries: readonly ToolEntry[],
  hidden: readonly string[] = [],
): Toolkit => {
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
  ].filter(({ name }) => !hidden.includes(name));
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    entries: Object.freeze([...entries]),
    groups,
    hidden,
    tools: Object.freeze(tools),
    names: [...byName.keys()],
    declarations: tools.map(({ name, description, inputSchema, vendorOptions }) => ({
      name,
      description,
      inputSchema,
      ...(vendorOptions === undefined ? {} : { vendorOptions }),
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
  const unasked = tools.find((tool) => 'approve' in tool);
  if (unasked !== undefined) {
    throw misuse(
      `The tool '${unasked.name}' has a property 'approve', which has no effect. Use requireApproval(tool, approver).`,
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
    throw misuse(`Two groups of tools are named '${group}'. Rename one of them, or merge them.`);
  }
};

const repeatIn = (names: readonly string[]): string | undefined => {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
};

/** Throws a `config` error if a call lacks what one of its tools needs, even an inactive one. */
export const assertReady = ({ entries }: Toolkit, call: CallOfTool): void => {
  for (const entry of entries) {
    for (const tool of isToolGroup(entry) ? entry.tools : [entry]) tool.assertReady?.(call);
  }
};

/** Rejects a `toolChoice` of a tool that the model does not have. */
export const refuseUnknownChoice = (
  toolChoice: ToolChoice | undefined,
  { names }: Toolkit,
): void => {
  if (toolChoice === 'required' && names.length === 0) {
    throw misuse("'toolChoice' is 'required', but the call has no tools.");
  }
  if (typeof toolChoice !== 'object' || names.includes(toolChoice.name)) return;
  throw misuse(
    `'toolChoice' names the tool '${toolChoice.name}'. The tools are: ${names.join(', ') || 'none'}.`,
  );
};

/**
 * Throws a `config` error for a name in `timeouts.tools` that is a misspelt tool of the call. Other unknown names may be those of tools
 * that come later, or of another agent with these limits.
 */
export const refuseMisspelt = (byName: object, { entries }: Toolkit): void => {
  const known = namesOf(entries);
  for (const name of Object.keys(byName)) {
    const meant = known.includes(name) || known.find((it) => isMisspelt(name, it));
    if (typeof meant === 'string' && !(meant in byName))
      throw misuse(`'timeouts.tools' names the tool '${name}'. Write '${meant}'.`);
  }
};

/** Whether two names differ in case and separators, by two swapped letters, or by one that is missing within a word of five or more. */
const isMisspelt = (...names: readonly string[]): boolean => {
  const [short = '', long = ''] = names
    .map((it) => it.toLowerCase().replace(/[\W_]/g, ''))
    .sort((a, b) => a.length - b.length);
  let start = 0;
  while (start < short.length && short[start] === long[start]) start += 1;
  const [rest, more] = [short.slice(start), long.slice(start)];
  if (rest === '' || short.length < 5) return more === '';
  return (
    start > 0 && [more.replace(/^[a-z]/, ''), more.replace(/^([a-z])(.)/, '$2$1')].includes(rest)
  );
};

export const isToolGroup = (value: unknown): value is ToolGroup =>
  typeof value === 'object' && value !== null && 'tools' in value && !('run$' in value);

export const isTool = (value: unknown): value is Tool =>
  isRecord(value) && typeof value['name'] === 'string' && typeof value['run$'] === 'function';

/** The current toolkit of a call, which may change. */
export interface ToolkitCell {
  current: Toolkit;
}

/** The toolkit of a call for its tools: the same for each of them. */
export const liveToolkit = (cell: ToolkitCell): LiveToolkit => {
  const known = live.get(cell);
  if (known !== undefined) return known;
  const created = createLiveToolkit(cell);
  live.set(cell, created);
  return created;
};

const live = new WeakMap<ToolkitCell, LiveToolkit>();

const createLiveToolkit = (cell: ToolkitCell): LiveToolkit => {
  const change = (entries: readonly ToolEntry[]): void => {
    cell.current = createToolkit(entries);
  };
  const setActive = (names: readonly string[], active: boolean): void => {
    const { entries, groups } = cell.current;
    const known = groups.map(({ name }) => name);
    refuseUnknown('group of tools', names, known);
    if (names.length === 0) return;
    const isMeant = (entry: ToolEntry): entry is ToolGroup =>
      isToolGroup(entry) && names.includes(entry.name);
    change(entries.map((entry) => (isMeant(entry) ? Object.freeze({ ...entry, active }) : entry)));
  };
  return {
    get names() {
      return cell.current.names;
    },
    get groups() {
      return cell.current.groups;
    },
    add: (...added) => change([...cell.current.entries, ...added]),
    remove: (...names) => {
      const { entries } = cell.current;
      refuseUnknown('tool or group', names, namesOf(entries));
      change(withoutNamed(entries, names));
    },
    replace: (...tools) => {
      const { entries } = cell.current;
      const names = tools.map(({ name }) => name);
      refuseUnknown('tool', names, namesOf(entries));
      const replaced = (tool: Tool): Tool => tools.find(({ name }) => name === tool.name) ?? tool;
      change(
        entries
          .map((entry) => (isToolGroup(entry) ? entry : replaced(entry)))
          .map(inGroups((inGroup) => inGroup.map(replaced))),
      );
    },
    activate: (...groups) => setActive(groups, true),
    deactivate: (...groups) => setActive(groups, false),
  };
};

/** Removes tools and groups by name, also tools in groups. */
export const withoutNamed = (
  entries: readonly ToolEntry[],
  names: readonly string[],
): readonly ToolEntry[] => {
  const stays = ({ name }: ToolEntry): boolean => !names.includes(name);
  return entries.filter(stays).map(inGroups((tools) => tools.filter(stays)));
};

const inGroups =
  (change: (tools: readonly Tool[]) => readonly Tool[]) =>
  (entry: ToolEntry): ToolEntry =>
    isToolGroup(entry) ? Object.freeze({ ...entry, tools: change(entry.tools) }) : entry;

export const namesOf = (entries: readonly ToolEntry[]): readonly string[] =>
  entries.flatMap((entry) =>
    isToolGroup(entry) ? [entry.name, ...entry.tools.map(({ name }) => name)] : [entry.name],
  );

const refuseUnknown = (what: string, names: readonly string[], known: readonly string[]): void => {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw misuse(`There is no ${what} named '${unknown}'. There are: ${known.join(', ') || 'none'}.`);
};

/** A view of a toolkit without some tools. Changes of either are in both. */
export const hiding = (cell: ToolkitCell, names: readonly string[]): ToolkitCell => {
  let whole: Toolkit | undefined;
  let part: Toolkit | undefined;
  return {
    get current() {
      // Cached: equal declarations are serialized once.
      if (part === undefined || whole !== cell.current) {
        whole = cell.current;
        part = createToolkit(whole.entries, [...whole.hidden, ...names]);
      }
      return part;
    },
    set current(changed) {
      cell.current = changed;
    },
  };
};
