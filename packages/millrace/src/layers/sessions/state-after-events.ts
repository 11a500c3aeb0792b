import type { AgentEvent, EventOf, StatePatch } from '../../events.js';
import { defined, isRecord } from '../../values/json.js';
import { frozen } from '../../values/message.js';
import { appendedTo, type Entry, type MessageTree, movedTo } from '../../values/message-tree.js';
import { addUsage } from '../../values/usage.js';
import {
  callsIn,
  latestCalls,
  type PendingApproval,
  type SessionState,
  startCall,
  subtractUsage,
  type ToolGroupStates,
  withEnded,
} from './session-state.js';
import { storedTree, treeOfState } from './session-tree.js';

type ResumedCall = Omit<CallOfSession, 'isJournaled'>;

/** The state after a call, from its recorded events. */
export const afterCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: ResumedCall,
): SessionState =>
  events.reduce(
    (before, event) => afterEvent(before, event, { ...call, isJournaled: true }),
    withCallStarted(state, call.callId),
  );

/** As `afterCall`, for a call before the last one of the state. */
export const afterLateCall = (
  state: SessionState,
  events: readonly AgentEvent[],
  call: ResumedCall,
): SessionState => {
  const after = afterCall(state, events, call);
  const lateCall = callsIn(after).filter(({ callId }) => callId === call.callId);
  const others = callsIn(state).filter(({ callId }) => callId !== call.callId);
  const { lastCall } = state;
  const earlierCalls = latestCalls([
    ...others.filter(({ callId }) => callId !== lastCall?.callId),
    ...lateCall,
  ]);
  const last = others.find(({ callId }) => callId === lastCall?.callId);
  const { lastCall: _last, earlierCalls: _earlier, branches: _, ...rest } = state;
  const { messages, branches, usage } = after;
  return {
    ...rest,
    messages,
    ...(branches !== undefined && { branches }),
    usage,
    ...(last !== undefined &&
      lastCall !== undefined && {
        lastCall: { ...lastCall, usageBefore: subtractUsage(after.usage, last.usage) },
      }),
    ...(earlierCalls !== undefined && { earlierCalls }),
  };
};

interface CallOfSession {
  readonly sessionId: string;
  readonly callId: string;
  readonly isJournaled: boolean;
}

export const afterEvent = (
  state: SessionState,
  event: AgentEvent,
  { sessionId, callId, isJournaled }: CallOfSession,
): SessionState => {
  // Calls below may be in other sessions, or in one of the same id: only their approvals concern this one.
  if (event.sessionId !== sessionId) return state;
  if (event.callId !== callId && !changesApprovals(event)) return state;
  switch (event.type) {
    case 'preCall':
      return withCallStarted(state, isJournaled ? callId : undefined);
    case 'messagesRemoved':
      return withTree(state, withoutEntries(treeOfState(state), event.ids));
    case 'messagesAppended':
      return withAppended(state, event);
    case 'headMoved':
      return withHeadMoved(state, event);
    case 'stateChanged':
      return changed(state, event);
    case 'postCall': {
      const { lastCall, earlierCalls } = state;
      const { reason, usage } = event.reply;
      return {
        ...state,
        ...(earlierCalls && { earlierCalls: withEnded(earlierCalls, callId) }),
        usage: addUsage(state.usage, usage),
        interrupted: reason === 'interrupted',
        ...(lastCall?.callId === callId && { lastCall: frozen({ ...lastCall, hasEnded: true }) }),
      };
    }
    default:
      return state;
  }
};

const withTree = ({ branches: _, ...state }: SessionState, tree: MessageTree): SessionState => ({
  ...state,
  ...storedTree(tree),
});

/** A head that has moved elsewhere meanwhile stays: the call is a branch. */
const withHeadMoved = (state: SessionState, { from, to }: EventOf<'headMoved'>): SessionState => {
  const tree = treeOfState(state);
  return to === null || tree.head !== from ? state : withTree(state, movedTo(tree, to));
};

/** Messages after one that the state does not have are appended after its last one. */
const withAppended = (
  state: SessionState,
  { messages, after }: EventOf<'messagesAppended'>,
): SessionState => {
  const tree = treeOfState(state);
  const isKnown = tree.entries.some(({ message }) => message.id === after);
  const place = after === null || (after !== undefined && isKnown) ? { after } : {};
  return withTree(state, appendedTo(tree, messages, place).tree);
};

/** Without these messages; those after them follow what is left. */
const withoutEntries = (tree: MessageTree, ids: readonly string[]): MessageTree => {
  const removed = new Set(ids);
  const gone = new Map<string, string | null>();
  const left = (id: string | null): string | null =>
    id !== null && gone.has(id) ? (gone.get(id) ?? null) : id;
  const entries = tree.entries.flatMap(({ message, after }): readonly Entry[] => {
    const before = left(after);
    if (!removed.has(message.id)) return [{ message, after: before }];
    gone.set(message.id, before);
    return [];
  });
  return { entries, head: left(tree.head) };
};

const withCallStarted = (state: SessionState, callId: string | undefined): SessionState => {
  const { lastCall: _last, earlierCalls: _earlier, ...rest } = state;
  const { lastCall, earlierCalls, ...changes } = startCall(state, callId);
  return {
    ...rest,
    ...changes,
    ...defined({ lastCall, earlierCalls }),
  };
};

const changesApprovals = (event: AgentEvent): boolean =>
  event.type === 'stateChanged' && event.name === 'approvals';

const changed = (state: SessionState, event: EventOf<'stateChanged'>): SessionState => {
  const { name, state: now, patches } = event;
  if (name === 'groups') return { ...state, groups: patched(state.groups, patches) };
  return name === 'approvals' && isApprovals(now) ? { ...state, approvals: now } : state;
};

/** Groups that another call has changed meanwhile stay as they are. */
const patched = (groups: ToolGroupStates, patches: readonly StatePatch[]): ToolGroupStates => {
  const states = new Map(Object.entries(groups));
  for (const { op, path, value } of patches) {
    const name = String(path[0]);
    if (op === 'remove') states.delete(name);
    else if (typeof value === 'boolean') states.set(name, value);
  }
  return Object.fromEntries(states);
};

const isApprovals = (value: unknown): value is readonly PendingApproval[] =>
  Array.isArray(value) &&
  value.every((it) => isRecord(it) && typeof it['callId'] === 'string' && isRecord(it['toolCall']));
