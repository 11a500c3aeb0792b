import { readState } from './read-state.js';
import type { SessionChange, SessionState } from './session-state.js';
import { storedTree, treeOfState } from './session-tree.js';

/**
 * The state after a change, for stores that keep a state and the entries that were added later. Throws `invalidState` if
 * the state is damaged.
 */
export const appendedState = (
  state: unknown,
  { entries, head, rest }: SessionChange,
): SessionState => {
  const before = treeOfState(readState(state));
  return { ...rest, ...storedTree({ entries: [...before.entries, ...entries], head }) };
};
