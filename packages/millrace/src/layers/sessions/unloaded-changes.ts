import { createToolkit, isToolGroup, type Toolkit, type ToolkitCell } from '../../tools/toolkit.js';
import type { SessionRecord, SessionState, ToolGroupStates } from './session-state.js';

/** The fields of a session that a program sets without waiting. */
export type SettableState = Pick<SessionState, 'title' | 'groups'>;

/** The changes of a program to a session while it was not open, until it is open again. */
export interface UnloadedChanges {
  readonly title: string | undefined;
  rename(title: string | undefined): void;
  readonly toolkit: ToolkitCell;
  /** Sets it on the session, which is open again. */
  apply(): void;
}

export const createUnloadedChanges = (
  record: Pick<SessionRecord, 'toolkit' | 'rename'>,
  before: SettableState,
): UnloadedChanges => {
  const { toolkit } = record;
  let { title } = before;
  let isRenamed = false;
  let groups: ToolGroupStates = {};
  const current = (): Toolkit => withStates(toolkit.current, { ...before.groups, ...groups });
  return {
    get title() {
      return title;
    },
    rename: (to) => {
      title = to;
      isRenamed = true;
    },
    toolkit: {
      get current() {
        return current();
      },
      set current(changed) {
        groups = { ...groups, ...changedStates(current(), changed) };
        toolkit.current = changed;
      },
    },
    apply: () => {
      const changed = withStates(toolkit.current, groups);
      if (isRenamed) record.rename(title);
      isRenamed = false;
      groups = {};
      const isChanged = Object.keys(changedStates(toolkit.current, changed)).length > 0;
      if (isChanged) toolkit.current = changed;
    },
  };
};

const changedStates = (before: Toolkit, after: Toolkit): ToolGroupStates => {
  const former = new Map(before.groups.map(({ name, active }) => [name, active]));
  return Object.fromEntries(
    after.groups.flatMap(({ name, active }) =>
      former.get(name) === active ? [] : [[name, active]],
    ),
  );
};

const withStates = ({ entries }: Toolkit, states: ToolGroupStates): Toolkit =>
  createToolkit(
    entries.map((entry) =>
      isToolGroup(entry) && Object.hasOwn(states, entry.name)
        ? Object.freeze({ ...entry, active: states[entry.name] ?? entry.active })
        : entry,
    ),
  );
