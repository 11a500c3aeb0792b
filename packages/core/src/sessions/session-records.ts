import type { ReportedPayload, StatePatch } from '../events.js';
import type { MessagesChange } from '../remember.js';
import type { Reply } from '../reply.js';
import { type Toolkit, createToolkit } from '../toolkit.js';
import type { ToolkitCell } from '../tools/live-toolkit.js';
import { addUsage, largerUsage, noUsage, tokensIn, type Usage } from '../usage.js';
import { isToolGroup } from '../tools/tool-group.js';
import type { ToolEntry } from '../tools/types.js';
import type {
  EarlierCall,
  LastCall,
  PendingApproval,
  SessionState,
  ToolGroupStates,
} from './session-state.js';
import { frozen } from '../frozen.js';

export interface SessionRecord {
  readonly toolkit: ToolkitCell;
  readonly state: Omit<SessionState, 'version' | 'messages'>;
  begin(callId?: string): void;
  spend(usage: Usage): void;
  end(callId: string, reply: Pick<Reply, 'reason' | 'usage'>, wasSeated: boolean): void;
  await(approval: PendingApproval, tell: (change: StateChange) => void): () => void;
  note(change: MessagesChange): void;
  takeUntold(): readonly Change[];
  restore(state: SessionState): void;
}

export type Tell = (change: Change) => boolean;

type Change = StateChange | MessagesChange;
type StateChange = Extract<ReportedPayload, { type: 'stateChanged' }>;

interface Untold {
  readonly groups?: ToolGroupStates;
  readonly messages: readonly MessagesChange[];
}

interface Entry extends Pick<SessionState, 'approvals' | 'usage' | 'interrupted'> {
  readonly toolkit: Toolkit;
  readonly lastCall?: LastCall | undefined;
  readonly earlierCalls?: readonly EarlierCall[] | undefined;
  readonly untold?: Untold | undefined;
}

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
          if (patches.length === 0) return;
          if (tell({ type: 'stateChanged', name: 'groups', state, patches })) return;
          change({ untold: { groups: before, messages: [], ...current().untold } });
        },
      },
      get state() {
        const { toolkit: now, approvals, usage, interrupted, lastCall, earlierCalls } = current();
        return {
          groups: groupsOf(now),
          approvals,
          usage,
          interrupted,
          ...(lastCall !== undefined && { lastCall }),
          ...(earlierCalls !== undefined && { earlierCalls }),
        };
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
      note: (changed) => {
        if (tell(changed)) return;
        const { untold } = current();
        change({ untold: { ...untold, messages: [...(untold?.messages ?? []), changed] } });
      },
      takeUntold: () => {
        const { untold, toolkit: now } = current();
        if (untold === undefined) return [];
        change({ untold: undefined });
        const state = groupsOf(now);
        const patches = groupPatches(untold.groups ?? state, state);
        const groups: StateChange = { type: 'stateChanged', name: 'groups', state, patches };
        return [...untold.messages, ...(patches.length > 0 ? [groups] : [])];
      },
      restore: ({ groups, approvals, usage, interrupted, lastCall, earlierCalls }) => {
        const restored = withGroups(current().toolkit, groups, initial.toolkit);
        const calls = { lastCall, earlierCalls };
        change({ toolkit: restored, approvals, usage, interrupted, ...calls, untold: undefined });
      },
    };
  };
};

const changedApprovals = (
  { approvals: state }: Entry,
  ...patches: StateChange['patches']
): StateChange => ({ type: 'stateChanged', name: 'approvals', state, patches });

const isInitial = (entry: Entry, initial: Entry): boolean =>
  entry.approvals.length === 0 &&
  !entry.interrupted &&
  entry.lastCall === undefined &&
  entry.earlierCalls === undefined &&
  entry.untold === undefined &&
  tokensIn(entry.usage) === 0 &&
  isSameToolkit(entry.toolkit, initial.toolkit);

const groupsOf = ({ groups }: Toolkit): ToolGroupStates =>
  Object.freeze(Object.fromEntries(groups.map(({ name, active }) => [name, active])));

const groupPatches = (before: ToolGroupStates, after: ToolGroupStates): readonly StatePatch[] => [
  ...Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name): StatePatch => ({ op: 'remove', path: [name] })),
  ...Object.entries(after).flatMap(([name, value]): readonly StatePatch[] => {
    if (!Object.hasOwn(before, name)) return [{ op: 'add', path: [name], value }];
    return before[name] === value ? [] : [{ op: 'replace', path: [name], value }];
  }),
];

const withGroups = (toolkit: Toolkit, states: ToolGroupStates, initial: Toolkit): Toolkit => {
  const first = groupsOf(initial);
  return createToolkit(
    toolkit.entries.map((entry) => {
      if (!isToolGroup(entry)) return entry;
      const { name } = entry;
      const known = [states, first].find((groups) => Object.hasOwn(groups, name));
      return Object.freeze({ ...entry, active: known?.[name] ?? entry.active });
    }),
  );
};

const isSameToolkit = (one: Toolkit, other: Toolkit): boolean =>
  one.entries.length === other.entries.length &&
  one.entries.every((entry, index) => isSameEntry(entry, other.entries[index]));

const isSameEntry = (one: ToolEntry, other: ToolEntry | undefined): boolean =>
  one === other ||
  (isToolGroup(one) &&
    isToolGroup(other) &&
    one.name === other.name &&
    one.active === other.active &&
    one.tools === other.tools);

export const mostEarlierCalls = 100;

interface Known extends Pick<SessionState, 'usage'> {
  readonly lastCall?: LastCall | undefined;
  readonly earlierCalls?: readonly EarlierCall[] | undefined;
}

type Begun = Required<Known> & Pick<SessionState, 'approvals' | 'interrupted'>;

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

export const callsIn = ({ usage, lastCall, earlierCalls = [] }: Known): readonly EarlierCall[] => {
  if (lastCall === undefined) return earlierCalls;
  const { callId, usageBefore, hasEnded } = lastCall;
  return [...earlierCalls, { callId, usage: less(usage, usageBefore), hasEnded }];
};

export const latest = (calls: readonly EarlierCall[]): readonly EarlierCall[] | undefined =>
  calls.length === 0 ? undefined : frozen(calls.slice(-mostEarlierCalls));

export const less = (usage: Usage, part: Usage): Usage => ({
  inputTokens: Math.max(0, usage.inputTokens - part.inputTokens),
  outputTokens: Math.max(0, usage.outputTokens - part.outputTokens),
  cacheReadTokens: Math.max(0, usage.cacheReadTokens - part.cacheReadTokens),
  cacheWriteTokens: Math.max(0, usage.cacheWriteTokens - part.cacheWriteTokens),
});
