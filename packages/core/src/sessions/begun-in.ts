import { frozen } from '../frozen.js';
import type { Usage } from '../usage.js';
import type { EarlierCall, LastCall, SessionState } from './session-state.js';

/** So many of the calls before the last one a state knows. */
export const mostEarlierCalls = 100;

/** What a session knows of its calls. */
interface Known extends Pick<SessionState, 'usage'> {
  readonly lastCall?: LastCall | undefined;
  readonly earlierCalls?: readonly EarlierCall[] | undefined;
}

/** What becomes of it when one begins. */
type Begun = Required<Known> & Pick<SessionState, 'approvals' | 'interrupted'>;

/** What a session is when one of its calls begins: with its id, where a journal writes it down. What has been counted of a call that goes on is counted anew. */
export const begunIn = (known: Known, callId: string | undefined): Begun => {
  const { usage, lastCall } = known;
  const calls = callsIn(known);
  const counted = calls.find((call) => call.callId === callId)?.usage;
  const before = counted === undefined ? usage : less(usage, counted);
  return {
    approvals: [],
    interrupted: false,
    usage: before,
    lastCall:
      callId === undefined ? undefined : frozen({ callId, usageBefore: before, hasEnded: false }),
    earlierCalls:
      lastCall?.callId === callId
        ? known.earlierCalls
        : latest(calls.filter((call) => call.callId !== callId)),
  };
};

/** All calls that a state knows, the last one, too, oldest first. */
export const callsIn = ({ usage, lastCall, earlierCalls = [] }: Known): readonly EarlierCall[] => {
  if (lastCall === undefined) return earlierCalls;
  const { callId, usageBefore, hasEnded } = lastCall;
  return [...earlierCalls, { callId, usage: less(usage, usageBefore), hasEnded }];
};

/** The calls that a state is to know, of these. */
export const latest = (calls: readonly EarlierCall[]): readonly EarlierCall[] | undefined =>
  calls.length === 0 ? undefined : frozen(calls.slice(-mostEarlierCalls));

/** A usage without a part of it. */
export const less = (usage: Usage, part: Usage): Usage => ({
  inputTokens: Math.max(0, usage.inputTokens - part.inputTokens),
  outputTokens: Math.max(0, usage.outputTokens - part.outputTokens),
  cacheReadTokens: Math.max(0, usage.cacheReadTokens - part.cacheReadTokens),
  cacheWriteTokens: Math.max(0, usage.cacheWriteTokens - part.cacheWriteTokens),
});
