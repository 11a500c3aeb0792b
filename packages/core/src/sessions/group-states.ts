import type { StatePatch } from '../events.js';
import { createToolkit, type Toolkit } from '../toolkit.js';
import { isToolGroup } from '../tools/tool-group.js';
import type { ToolEntry } from '../tools/types.js';
import type { ToolGroupStates } from './session-state.js';

/** Which groups of a toolkit are active. */
export const groupsOf = ({ groups }: Toolkit): ToolGroupStates =>
  Object.freeze(Object.fromEntries(groups.map(({ name, active }) => [name, active])));

/** What makes the one of the other. */
export const groupPatches = (
  before: ToolGroupStates,
  after: ToolGroupStates,
): readonly StatePatch[] => [
  ...Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name): StatePatch => ({ op: 'remove', path: [name] })),
  ...Object.entries(after).flatMap(([name, value]): readonly StatePatch[] => {
    if (!Object.hasOwn(before, name)) return [{ op: 'add', path: [name], value }];
    return before[name] === value ? [] : [{ op: 'replace', path: [name], value }];
  }),
];

/** A toolkit whose groups are as these say. A group that they do not name is as it was in the beginning; one that there is not is passed over. */
export const withGroups = (
  toolkit: Toolkit,
  states: ToolGroupStates,
  initial: Toolkit,
): Toolkit => {
  const first = groupsOf(initial);
  return createToolkit(
    toolkit.entries.map((entry) => {
      if (!isToolGroup(entry)) return entry;
      const { name } = entry;
      const known = [states, first].find((groups) => Object.hasOwn(groups, name));
      return Object.freeze({ ...entry, active: known?.[name] ?? entry.active });
    }),
  );
};

/** Tells whether two toolkits have the same tools, in the same groups that are active or not. */
export const isSameToolkit = (one: Toolkit, other: Toolkit): boolean =>
  one.entries.length === other.entries.length &&
  one.entries.every((entry, index) => isSameEntry(entry, other.entries[index]));

const isSameEntry = (one: ToolEntry, other: ToolEntry | undefined): boolean =>
  one === other ||
  (isToolGroup(one) &&
    isToolGroup(other) &&
    one.name === other.name &&
    one.active === other.active &&
    one.tools === other.tools);
