import type { AgentEvent, EventOf } from '../events.js';
import { callsIn, latest, less, begunIn } from './begun-in.js';
import { frozen } from '../frozen.js';
import { isRecord } from '../json.js';
import { addUsage } from '../usage.js';
import type { SessionState, PendingApproval, ToolGroupStates } from './session-state.js';

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

/** A call of a session. */
interface CallOfSession {
  readonly sessionId: string;
  readonly callId: string;
  /** Whether a journal writes it down. */
  readonly isWrittenDown: boolean;
}

/** Tells what the state of a session becomes by an event of one of its calls, or of a call below it. What one has cost that has no reply is not known. */
export const afterEvent = (
  state: SessionState,
  event: AgentEvent,
  { sessionId, callId, isWrittenDown }: CallOfSession,
): SessionState => {
  // Calls below may be in sessions of their own, also in those of the same id: they have no part in it but what waits for approval.
  if (event.sessionId !== sessionId) return state;
  if (event.callId !== callId && !isOfApprovals(event)) return state;
  switch (event.type) {
    case 'preCall':
      return begun(state, isWrittenDown ? callId : undefined);
    case 'messagesRemoved': {
      const gone = new Set(event.ids);
      return { ...state, messages: state.messages.filter(({ id }) => !gone.has(id)) };
    }
    case 'messagesAppended': {
      const known = new Set(state.messages.map(({ id }) => id));
      const added = event.messages.filter(({ id }) => !known.has(id) && known.add(id));
      return { ...state, messages: [...state.messages, ...added] };
    }
    case 'stateChanged':
      return changed(state, event);
    case 'postCall': {
      const { lastCall } = state;
      const { reason, usage } = event.reply;
      return {
        ...state,
        usage: addUsage(state.usage, usage),
        interrupted: reason === 'interrupted',
        ...(lastCall?.callId === callId && { lastCall: frozen({ ...lastCall, hasEnded: true }) }),
      };
    }
    default:
      return state;
  }
};

/** What a state becomes when a call of its session begins. */
const begun = (state: SessionState, callId: string | undefined): SessionState => {
  const { lastCall: _last, earlierCalls: _earlier, ...rest } = state;
  const { lastCall, earlierCalls, ...changes } = begunIn(state, callId);
  return {
    ...rest,
    ...changes,
    ...(lastCall !== undefined && { lastCall }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
};

const isOfApprovals = (event: AgentEvent): boolean =>
  event.type === 'stateChanged' && event.name === 'approvals';

const changed = (state: SessionState, event: EventOf<'stateChanged'>): SessionState => {
  const { name, state: now } = event;
  if (name === 'groups' && isGroups(now)) return { ...state, groups: now };
  return name === 'approvals' && isApprovals(now) ? { ...state, approvals: now } : state;
};

const isGroups = (value: unknown): value is ToolGroupStates =>
  isRecord(value) && Object.values(value).every((active) => typeof active === 'boolean');

const isApprovals = (value: unknown): value is readonly PendingApproval[] =>
  Array.isArray(value) &&
  value.every((it) => isRecord(it) && typeof it['callId'] === 'string' && isRecord(it['toolUse']));
