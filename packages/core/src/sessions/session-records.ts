import type { ReportedPayload } from '../events.js';
import type { Toolkit } from '../toolkit.js';
import type { ToolkitCell } from '../tools/live-toolkit.js';
import { addUsage, noUsage, tokensIn, type Usage } from '../usage.js';
import { groupPatches, groupsOf, isSameToolkit, withGroups } from './group-states.js';
import type { PendingApproval, SessionState } from './session-state.js';

/** What an agent knows of one session beside its messages. */
export interface SessionRecord {
  readonly toolkit: ToolkitCell;
  readonly state: Omit<SessionState, 'version' | 'messages'>;
  /** A call of the session begins. */
  begin(): void;
  /** A request has cost something. */
  spend(usage: Usage): void;
  /** The call has its reply. */
  end(isInterrupted: boolean): void;
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
        const { toolkit: now, approvals, usage, interrupted } = current();
        return { groups: groupsOf(now), approvals, usage, interrupted };
      },
      begin: () => {
        const { approvals, interrupted } = current();
        if (approvals.length > 0 || interrupted) change({ approvals: [], interrupted: false });
      },
      spend: (usage) => change({ usage: addUsage(current().usage, usage) }),
      end: (interrupted) => {
        if (interrupted) change({ interrupted });
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
      restore: ({ groups, approvals, usage, interrupted }) => {
        const restored = withGroups(current().toolkit, groups, initial.toolkit);
        change({ toolkit: restored, approvals, usage, interrupted });
      },
    };
  };
};

const changedApprovals = (
  { approvals: state }: Entry,
  ...patches: Parameters<Tell>[0]['patches']
): Parameters<Tell>[0] => ({ type: 'stateChanged', name: 'approvals', state, patches });

const isInitial = (entry: Entry, initial: Entry): boolean =>
  entry.approvals.length === 0 &&
  !entry.interrupted &&
  tokensIn(entry.usage) === 0 &&
  isSameToolkit(entry.toolkit, initial.toolkit);
