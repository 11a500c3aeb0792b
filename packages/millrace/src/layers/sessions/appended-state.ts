import equal from 'fast-deep-equal';
import { readState } from './read-state.js';
import {
  type EarlierCall,
  maxEarlierCalls,
  type SessionChange,
  type SessionState,
} from './session-state.js';
import { storedTree, treeOfState } from './session-tree.js';

/**
 * The state after a change, for stores that keep a state and the entries that were added later. Throws `invalidState` if
 * the state is damaged.
 */
export const appendedState = (
  state: unknown,
  { entries, head, rest }: SessionChange,
): SessionState => {
  const before = readState(state);
  const messages = entries.filter((entry) => 'message' in entry);
  const calls = entries.filter((entry) => 'call' in entry).map(({ call }) => call);
  const earlierCalls = callsAfter(before, calls, rest);
  return {
    // A rest that an earlier release wrote has all of its earlier calls.
    ...(earlierCalls.length > 0 && { earlierCalls }),
    ...rest,
    ...storedTree({ entries: [...treeOfState(before).entries, ...messages], head }),
  };
};

type RecentCalls = Pick<SessionState, 'lastCall' | 'earlierCalls'>;

/** The calls that lead from the earlier calls of one state to those of another; `undefined` if calls that are added do not. */
export const callsSince = (
  former: RecentCalls,
  state: RecentCalls,
): readonly EarlierCall[] | undefined => {
  const { earlierCalls = [] } = state;
  const known = new Map(former.earlierCalls?.map((call) => [call.callId, call]));
  const start = earlierCalls.findIndex((call) => !equal(call, known.get(call.callId)));
  const added = start === -1 ? [] : earlierCalls.slice(start);
  const last = former.lastCall?.callId;
  const isKept =
    last === undefined || [...earlierCalls, state.lastCall].some((call) => call?.callId === last);
  return isKept && equal(callsAfter(former, added, state), earlierCalls) ? added : undefined;
};

const callsAfter = (
  { earlierCalls = [] }: RecentCalls,
  added: readonly EarlierCall[],
  { lastCall }: RecentCalls,
): readonly EarlierCall[] => {
  const calls = new Map<string, EarlierCall>();
  for (const call of [...earlierCalls, ...added]) {
    calls.delete(call.callId);
    calls.set(call.callId, call);
  }
  return [...calls.values()]
    .slice(-maxEarlierCalls)
    .filter(({ callId }) => callId !== lastCall?.callId);
};
