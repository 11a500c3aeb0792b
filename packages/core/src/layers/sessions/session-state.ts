import { defer, type Observable, of } from 'rxjs';
import { MillraceError } from '../../values/errors.js';
import type { ReportedPayload, StatePatch } from '../../events.js';
import { copied, frozen, type Message, type ToolCallBlock } from '../../values/message.js';
import type { MessagesChange } from '../../phases/remember.js';
import type { Reply } from '../../values/reply.js';
import { createToolkit, isToolGroup, type Toolkit, type ToolkitCell } from '../../tools/toolkit.js';
import type { ToolEntry } from '../../tools/types.js';
import { addUsage, largerUsage, noUsage, tokensIn, type Usage } from '../../values/usage.js';

/** All there is to know of a session, as plain JSON. */
export interface SessionState {
  /** The form that it has: other ones have other numbers. */
  readonly version: 2;
  /** What the memory of the session keeps, oldest first. `details` of results are left out where JSON cannot hold them. */
  readonly messages: readonly Message[];
  /** Which groups of tools are active, by name. */
  readonly groups: ToolGroupStates;
  /** What somebody decides on. */
  readonly approvals: readonly PendingApproval[];
  /** Added up over the calls of the session, also over those that failed. */
  readonly usage: Usage;
  /** Whether the last call ended by an interrupt. */
  readonly interrupted: boolean;
  /** The last call that began, where it is one that a journal writes down: whoever goes on with it knows by this what is done already. */
  readonly lastCall?: LastCall;
  /** The calls before that one that a journal writes down, oldest first, the last 100 of them: what of them goes on, or is asked for again, is not there twice. */
  readonly earlierCalls?: readonly EarlierCall[];
}

/** What a state has of a call that may be resumed. */
export interface LastCall {
  /** Its id, as in the journal. */
  readonly callId: string;
  /** What the session had cost before it. */
  readonly usageBefore: Usage;
  /** Whether all of it is in the state. */
  readonly hasEnded: boolean;
}

/** What a state has of a call that others have followed. */
export interface EarlierCall {
  /** Its id, as in the journal. */
  readonly callId: string;
  /** What of it is in the usage of the session. */
  readonly usage: Usage;
  /** Whether all of it is in the state. */
  readonly hasEnded: boolean;
}

/** Whether groups of tools are active, by name. */
export type ToolGroupStates = Readonly<Record<string, boolean>>;

/** A tool use of a running call that waits for approval. */
export interface PendingApproval {
  /** The call that asked for the tool: one of the session's, or one below it. */
  readonly callId: string;
  /** With the input that it would run with. */
  readonly toolCall: ToolCallBlock;
}

export const stateVersion: SessionState['version'] = 2;

/** A state as a store has it. */
export interface StoredSession {
  /** Another one after each save. */
  readonly version: number;
  /** What was saved. Whoever loads it checks it, as `session.loadState` does. */
  readonly state: unknown;
}

/** Keeps the states of sessions. A save names the version it follows, and changes nothing if that is not the current one: of several concurrent saves, one wins. Copies states in and out. An id is any text and never a path; a store rejects ids that it cannot keep with `invalidRequest`. Everything is cold. */
export interface SessionStore {
  /** Emits what is there, or `undefined`, and completes. */
  load$(sessionId: string): Observable<StoredSession | undefined>;
  /** Saves a state in the place of the one of this version, or as the first one where there is none to be, and emits its own version. Errors with `conflict` where there is another version by now, or none any more. */
  save$(
    sessionId: string,
    state: SessionState,
    expectedVersion: number | undefined,
  ): Observable<number>;
  /** Emits the ids of all sessions there are, in any order, and completes. */
  list$(): Observable<readonly string[]>;
  /** Removes a session, and completes; one that is not there is no error. */
  remove$(sessionId: string): Observable<unknown>;
}

/** Keeps the states of sessions in this process, for as long as it is held. A version never comes again, also where a session is removed and saved anew. */
export const inProcessSessions = (): SessionStore => {
  const stored = new Map<string, StoredSession>();
  let last = 0;
  return {
    load$: (sessionId) =>
      defer(() => {
        const found = stored.get(sessionId);
        return of(found && { version: found.version, state: copied(found.state) });
      }),
    save$: (sessionId, state, expectedVersion) =>
      defer(() => {
        const version = stored.get(sessionId)?.version;
        if (version !== expectedVersion) throw sessionConflict(sessionId, expectedVersion, version);
        last += 1;
        stored.set(sessionId, { version: last, state: copied(state) });
        return of(last);
      }),
    list$: () => defer(() => of([...stored.keys()])),
    remove$: (sessionId) => defer(() => of(stored.delete(sessionId))),
  };
};

/** The error of a save that does not follow what is there. */
export const sessionConflict = (
  sessionId: string,
  expected: number | undefined,
  found: number | undefined,
): MillraceError =>
  new MillraceError(
    'conflict',
    `The session '${sessionId}' was to be saved after ${versioned(expected)}, and the store has ${versioned(found)}. Somebody else has saved or removed it: open it again.`,
  );

const versioned = (version: number | undefined): string =>
  version === undefined ? 'no state' : `version ${version}`;

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

type Tell = (change: Change) => boolean;

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
