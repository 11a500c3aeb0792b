import { filter, type MonoTypeOperatorFunction } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { checkOptions, isFlag } from '../options.js';

/** Whose events an operator looks at. */
export interface CallsHeard {
  /** Also those of sub-agents, at any depth. Default: false, root calls only. */
  readonly subAgents?: boolean;
}

/** Lets the events of root calls through, and those of sub-agents where they are wanted. */
export const heard = (
  owner: string,
  options: CallsHeard = {},
): MonoTypeOperatorFunction<AgentEvent> => {
  checkOptions(owner, options, { subAgents: isFlag });
  const { subAgents = false } = options;
  return filter(({ parentId }) => subAgents || parentId === undefined);
};
