import { filter, type MonoTypeOperatorFunction } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { checkOptions, isFlag } from '../options.js';

/** Whose events an operator looks at. */
export interface CallsHeard {
  /** Also those of sub-agents, at any depth. Default: false, root calls only. */
  readonly subAgents?: boolean;
}

/** Lets the events of root calls through, and those of sub-agents where they are wanted. */
export const heard = (owner: string, options?: CallsHeard): MonoTypeOperatorFunction<AgentEvent> =>
  chosen(owner, options, ({ parentId }) => parentId === undefined);

/** Lets through what says something of the answer: root calls, the calls below that speak for them, and those of other sub-agents where they are wanted. */
export const spoken = (owner: string, options?: CallsHeard): MonoTypeOperatorFunction<AgentEvent> =>
  chosen(owner, options, isSpoken);

export const isSpoken = ({ parentId, speaks }: AgentEvent): boolean =>
  parentId === undefined || speaks === true;

const chosen = (
  owner: string,
  options: CallsHeard = {},
  isOwn: (event: AgentEvent) => boolean,
): MonoTypeOperatorFunction<AgentEvent> => {
  checkOptions(owner, options, { subAgents: isFlag });
  const { subAgents = false } = options;
  return filter((event) => subAgents || isOwn(event));
};
