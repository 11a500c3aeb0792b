import { misuse } from '../errors.js';
import { createToolkit, isToolGroup, type Toolkit } from '../toolkit.js';
import type { LiveToolkit, Tool, ToolEntry, ToolGroup } from './types.js';

/** Where the tools of a session are. */
export interface ToolkitCell {
  current: Toolkit;
}

export const liveToolkit = (cell: ToolkitCell): LiveToolkit => {
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

/** Has just these groups active. Such as are not there any more are passed over. */
export const activateOnly = (cell: ToolkitCell, active: readonly string[]): void => {
  cell.current = createToolkit(
    cell.current.entries.map((entry) =>
      isToolGroup(entry) ? Object.freeze({ ...entry, active: active.includes(entry.name) }) : entry,
    ),
  );
};

export const activeGroups = (groups: readonly ToolGroup[]): readonly string[] =>
  groups.filter(({ active }) => active).map(({ name }) => name);

/** Without the tools and groups of these names, those in groups too. */
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

/** Shows a toolkit without some of its tools, as it is just now. */
export const createView = (
  cell: { readonly current: Toolkit },
  hidden: readonly string[],
): (() => Toolkit) => {
  if (hidden.length === 0) return () => cell.current;
  let whole: Toolkit | undefined;
  let part: Toolkit | undefined;
  return () => {
    // The same declarations each time, as they are written for the wire but once.
    if (part === undefined || whole !== cell.current) {
      whole = cell.current;
      part = without(whole, hidden);
    }
    return part;
  };
};

const without = (toolkit: Toolkit, hidden: readonly string[]): Toolkit => {
  const isShown = ({ name }: { readonly name: string }): boolean => !hidden.includes(name);
  return {
    ...toolkit,
    tools: toolkit.tools.filter(isShown),
    names: toolkit.names.filter((name) => !hidden.includes(name)),
    declarations: toolkit.declarations.filter(isShown),
    find: (name) => (hidden.includes(name) ? undefined : toolkit.find(name)),
  };
};
