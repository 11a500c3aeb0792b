import type { Toolkit } from '../toolkit.js';
import type { ToolkitCell } from './live-toolkit.js';

/**
 * Where the tools of an agent's sessions are. All begin with those of the agent, and one that has changed them is remembered by its id, for as long as
 * the agent is.
 */
export const createSessionToolkits = (initial: Toolkit): ((sessionId: string) => ToolkitCell) => {
  const changed = new Map<string, Toolkit>();
  return (sessionId) => ({
    get current() {
      return changed.get(sessionId) ?? initial;
    },
    set current(toolkit) {
      changed.set(sessionId, toolkit);
    },
  });
};
