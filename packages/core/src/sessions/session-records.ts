import type { ReportedPayload } from '../events.js';
import type { Reply } from '../reply.js';
import type { Toolkit } from '../toolkit.js';
import type { ToolkitCell } from '../tools/live-toolkit.js';
import { addUsage, largerUsage, noUsage, tokensIn, type Usage } from '../usage.js';
import { groupPatches, groupsOf, isSameToolkit, withGroups } from './group-states.js';
import type { LastCall, PendingApproval, SessionState } from './session-state.js';

/** What an agent knows of one session beside its messages. */
export interface SessionRecord {
  readonly toolkit: ToolkitCell;
  readonly state: Omit<SessionState, 'version' | 'messages'>;
  /** A call of the session begins, or goes on: with its id, where a journal writes it down. */
  begin(callId?: string): void;
  /** A request has cost something. */
  spend(usage: Usage): void;
  /** The call has its reply. One that was interrupted while it waited has not been one of the session's. */
  end(callId: string, reply: Pick<Reply, 'reason' | 'usage'>, wasSeated: boolean): void;
  /** Somebody decides on a tool use. Gives what takes that back, once. */
  await(approval: PendingApproval, tell: Tell): () => void;
  /** Puts a state in the place of what is known. */
  restore(state: SessionState): void;
}

/** Tells of a change, in the call in which it happens. */
export type Tell = (payload: Extract<ReportedPayload, { type: 'stateChanged' }>) => void;

/** What differs from how a session begins. */
interface Entry extends Pick<SessionState, 'approvals' | 'usage' | 'interrupted'> {
  readonly toolkit: Toolkit;
  readonly lastCall?: LastCall | undefined;
}

/**
 * What an agent knows of its sessions beside their messages. All begin alike, and only what differs from that is kept, by the id of the session, for as long as
 * the agent is.
 */
export const createSessionRecords = (
  toolkit: Toolkit,
): ((sessionId: string, tell: Tell) => SessionRecord) => {
  const initial: Entry = { toolkit, approvals: [], usage: noUsage, interrupted: false };
  const entries = new Map<string, Entry>();
  return (sessionId, tell) => {
    const current = (): Entry => entries.get(sessionId) ?? initial;
    const change = (changed: Partial<Entry>): void => {
      const entry = { ...current(), ...changed };
      if (isInitial(entry, initial)) entries.delete(sessionId);
      else entries.set(sessionId, entry);
    };
    const decideOn = (approvals: Entry['approvals']): void =>
      change({ approvals: Object.freeze(approvals) });
    return {
      toolkit: {
        get current() {
          return current().toolkit;
        },
        set current(changed) {
          const before = groupsOf(current().toolkit);
          change({ toolkit: changed });
          const state = groupsOf(changed);
          const patches = groupPatches(before, state);
          if (patches.length > 0) tell({ type: 'stateChanged', name: 'groups', state, patches });
        },
      },
      get state() {
        const { toolkit: now, approvals, usage, interrupted, lastCall } = current();
        const known = { groups: groupsOf(now), approvals, usage, interrupted };
        return lastCall === undefined ? known : { ...known, lastCall };
      },
      begin: (callId) => change(begunIn(current(), callId)),
      spend: (usage) => change({ usage: addUsage(current().usage, usage) }),
      end: (callId, { reason, usage }, wasSeated) => {
        const { lastCall, usage: counted } = current();
        if (wasSeated && reason === 'interrupted') change({ interrupted: true });
        if (lastCall?.callId !== callId) return;
        // What calls below have cost that were not made again, only the reply knows.
        const whole = largerUsage(counted, addUsage(lastCall.usageBefore, usage));
        change({ usage: whole, lastCall: Object.freeze({ ...lastCall, hasEnded: true }) });
      },
      await: (approval, tellOf) => {
        const { approvals } = current();
        const path = [approvals.length];
        decideOn([...approvals, approval]);
        const added = { op: 'add', path, value: approval } as const;
        tellOf(changedApprovals(current(), added));
        return () => {
          const index = current().approvals.indexOf(approval);
          if (index === -1) return;
          decideOn(current().approvals.filter((other) => other !== approval));
          tellOf(changedApprovals(current(), { op: 'remove', path: [index] }));
        };
      },
      restore: ({ groups, approvals, usage, interrupted, lastCall }) => {
        const restored = withGroups(current().toolkit, groups, initial.toolkit);
        change({ toolkit: restored, approvals, usage, interrupted, lastCall });
      },
    };
  };
};

/** What a session is when one of its calls begins. What has been counted of a call that goes on is counted anew. */
export const begunIn = (
  { usage, lastCall }: Pick<SessionState, 'usage'> & { readonly lastCall?: LastCall | undefined },
  callId: string | undefined,
): Pick<Entry, 'approvals' | 'usage' | 'interrupted' | 'lastCall'> => {
  const before = callId !== undefined && lastCall?.callId === callId ? lastCall.usageBefore : usage;
  return {
    approvals: [],
    interrupted: false,
    usage: before,
    lastCall:
      callId === undefined
        ? undefined
        : Object.freeze({ callId, usageBefore: before, hasEnded: false }),
  };
};

const changedApprovals = (
  { approvals: state }: Entry,
  ...patches: Parameters<Tell>[0]['patches']
): Parameters<Tell>[0] => ({ type: 'stateChanged', name: 'approvals', state, patches });

const isInitial = (entry: Entry, initial: Entry): boolean =>
  entry.approvals.length === 0 &&
  !entry.interrupted &&
  entry.lastCall === undefined &&
  tokensIn(entry.usage) === 0 &&
  isSameToolkit(entry.toolkit, initial.toolkit);
