import { defer } from 'rxjs';
import type { Layer } from '../layer.js';
import { createToolkit, type Toolkit } from '../toolkit.js';
import { namesOf, type ToolkitCell, withoutNamed } from './live-toolkit.js';
import type { ToolEntry } from './types.js';

/** Adds tools beside those of the session or agent, for the `use` of a call. No selection hides them. A name that exists already is a `config` error. */
export const addTools = (...added: readonly ToolEntry[]): Layer => ({
  name: 'addTools',
  priority: 54,
  call: () => (next) => (call) =>
    defer(() =>
      next({
        ...call,
        toolkit: withAdded(call.toolkit, added),
        pinned: [...call.pinned, ...namesOf(added)],
      }),
    ),
});

/**
 * Adds the tools of one call to those in a cell, or throws a `config` error where a name is there already. What the call changes of the others is changed in
 * the cell; its own never come into it. Where the cell gets a tool of the same name later, the call goes on with its own.
 */
const withAdded = (cell: ToolkitCell, added: readonly ToolEntry[]): ToolkitCell => {
  let own = added;
  let seen = cell.current;
  let whole = createToolkit([...seen.entries, ...own]);
  return {
    get current() {
      if (seen !== cell.current) {
        seen = cell.current;
        whole = createToolkit([...withoutNamed(seen.entries, namesOf(own)), ...own]);
      }
      return whole;
    },
    set current(changed: Toolkit) {
      const names = namesOf(added);
      const isOwn = ({ name }: ToolEntry): boolean => names.includes(name);
      const hidden = seen.entries.filter((entry) => isOwn(entry));
      own = changed.entries.filter(isOwn);
      whole = changed;
      const rest = changed.entries.filter((entry) => !isOwn(entry));
      seen = createToolkit([...rest, ...hidden]);
      cell.current = seen;
    },
  };
};
