import type { AgentEvent } from '../events.js';
import { afterEvent, begun, type CallOfSession } from './after-event.js';
import { callsIn, latest, less } from './begun-in.js';
import type { SessionState } from './session-state.js';

/** A call that a journal has written down. */
type WrittenCall = Omit<CallOfSession, 'isWrittenDown'>;

/** Tells what the state of a session becomes by a call that a journal has written down, whatever of it the state has already. */
export const afterCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: WrittenCall,
): SessionState =>
  events.reduce(
    (before, event) => afterEvent(before, event, { ...call, isWrittenDown: true }),
    begun(state, call.callId),
  );

/** The same of a call that others have followed: the session has what it said and cost, and is otherwise as they have left it. */
export const afterLateCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: WrittenCall,
): SessionState => {
  const after = afterCall(state, events, call);
  const late = callsIn(after).filter(({ callId }) => callId === call.callId);
  const others = callsIn(state).filter(({ callId }) => callId !== call.callId);
  const { lastCall } = state;
  const earlierCalls = latest([
    ...others.filter(({ callId }) => callId !== lastCall?.callId),
    ...late,
  ]);
  const last = others.find(({ callId }) => callId === lastCall?.callId);
  const { lastCall: _last, earlierCalls: _earlier, ...rest } = state;
  return {
    ...rest,
    messages: after.messages,
    usage: after.usage,
    ...(last !== undefined &&
      lastCall !== undefined && {
        lastCall: { ...lastCall, usageBefore: less(after.usage, last.usage) },
      }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
};
