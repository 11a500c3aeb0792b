import type { Observable } from 'rxjs';
import { MillraceError } from '../../values/errors.js';
import type { ReportedPayload, StatePatch } from '../../events.js';
import { frozen, type Message, type ToolCallBlock } from '../../values/message.js';
import type { MessagesChange } from '../../phases/remember.js';
import type { Reply } from '../../values/reply.js';
import { createToolkit, isToolGroup, type Toolkit, type ToolkitCell } from '../../tools/toolkit.js';
import type { Entry } from '../../values/message-tree.js';
import type { BranchEntry } from './session-tree.js';
import type { ToolEntry } from '../../tools/types.js';
import { addUsage, largerUsage, noUsage, tokensIn, type Usage } from '../../values/usage.js';
import type { SessionQuery, SessionSummary } from './find-sessions.js';

export interface SessionState {
  /** The version of this format, the only one that can be loaded. */
  readonly version: 1;
  /** The messages of the branch that is continued by default, oldest first. Result `details` that are not JSON are omitted. */
  readonly messages: readonly Message[];
  /** The messages of other branches, if there are any, in the order in which they were added. */
  readonly branches?: readonly BranchEntry[];
  /** Its name for people. */
  readonly title?: string;
  readonly groups: ToolGroupStates;
  readonly approvals: readonly PendingApproval[];
  /** Total usage of the session's calls, including failed ones. */
  readonly usage: Usage;
  readonly interrupted: boolean;
  /** The last call that started, if it has a journal: a resume sees by it what is done already. */
  readonly lastCall?: LastCall;
  /** Up to 100 journaled calls before that one, oldest first: resuming one of them adds nothing twice. */
  readonly earlierCalls?: readonly EarlierCall[];
}

/** The change of a save that only adds messages. */
export interface SessionChange {
  /** The added messages, each with the id of the message before it, and calls, in the order in which they were added. */
  readonly entries: readonly (Entry | CallEntry)[];
  /** The last message of the branch that is continued by default. */
  readonly head: string | null;
  /** The state without what entries add. It replaces the stored one. */
  readonly rest: Omit<SessionState, 'messages' | 'branches' | 'earlierCalls'>;
}

/** A call that is now the last one of the earlier calls. */
export interface CallEntry {
  readonly call: EarlierCall;
}

export interface LastCall {
  readonly callId: string;
  /** Usage of the session before the call. */
  readonly usageBefore: Usage;
  /** Whether the state contains all of the call. */
  readonly hasEnded: boolean;
}

export interface EarlierCall {
  readonly callId: string;
  readonly usage: Usage;
  /** Whether the state contains all of the call. */
  readonly hasEnded: boolean;
}

export type ToolGroupStates = Readonly<Record<string, boolean>>;

export interface PendingApproval {
  /** The call of the session, or one below it, that made the tool call. */
  readonly callId: string;
  readonly toolCall: ToolCallBlock;
}

export const stateVersion: SessionState['version'] = 1;

export interface StoredSession {
  /** Changes with every save. */
  readonly version: number;
  /** The saved state. Validate it after loading, as `session.loadState` does. */
  readonly state: unknown;
}

/**
 * Persists session states. A save names the version that it replaces and has no effect if that is not current: of
 * concurrent saves, one wins. Copies states in and out. Ids are arbitrary strings, never paths; a store rejects ids
 * that it cannot store with `invalidRequest`. Everything is cold.
 */
export interface SessionStore {
  /** Emits the stored session or `undefined`, and completes. */
  load$(sessionId: string): Observable<StoredSession | undefined>;
  /** Saves a state and emits its version. Errors with `conflict` unless `expectedVersion` (none if new) is current. */
  save$(
    sessionId: string,
    state: SessionState,
    expectedVersion: number | undefined,
  ): Observable<number>;
  /**
   * As `save$`, for a state that adds messages to the stored one: costs what it adds. Default: the whole state is saved
   * each time.
   */
  append$?(sessionId: string, change: SessionChange, expectedVersion: number): Observable<number>;
  /**
   * Emits a page of the sessions that match a query, most recently saved first, and completes. Sessions that were saved at the
   * same time have any order that stays the same. Errors with `invalidRequest` if the query is not valid.
   */
  find$(query?: SessionQuery): Observable<readonly SessionSummary[]>;
  /** Removes a session and completes, even if it does not exist. */
  remove$(sessionId: string): Observable<unknown>;
}

export const sessionConflict = (
  sessionId: string,
  expected: number | undefined,
  found: number | undefined,
): MillraceError =>
  new MillraceError(
    'conflict',
    `The session '${sessionId}' was to be saved after ${versioned(expected)}, but the store has ${versioned(found)}. Another process has saved or removed it: open it again.`,
  );

const versioned = (version: number | undefined): string =>
  version === undefined ? 'no state' : `version ${version}`;

export interface SessionRecord {
  readonly toolkit: ToolkitCell;
  readonly state: Omit<SessionState, 'version' | 'messages' | 'branches'>;
  rename(title: string | undefined): void;
  begin(callId?: string): void;
  spend(usage: Usage): void;
  end(callId: string, reply: Pick<Reply, 'reason' | 'usage'>, hadTurn: boolean): void;
  awaitApproval(approval: PendingApproval, report: (change: StateChange) => void): () => void;
  reportMessages(change: MessagesChange): void;
  takePending(): readonly Change[];
  restore(state: SessionState): void;
}

type Report = (change: Change) => boolean;

type Change = StateChange | MessagesChange;
type StateChange = Extract<ReportedPayload, { type: 'stateChanged' }>;

interface PendingChanges {
  readonly groups?: ToolGroupStates;
  readonly messages: readonly MessagesChange[];
}

interface RecordEntry extends Pick<SessionState, 'approvals' | 'usage' | 'interrupted'> {
  readonly title?: string | undefined;
  readonly toolkit: Toolkit;
  readonly lastCall?: LastCall | undefined;
  readonly earlierCalls?: readonly EarlierCall[] | undefined;
  readonly pending?: PendingChanges | undefined;
}

export const createSessionRecords = (
  toolkit: Toolkit,
): ((sessionId: string, report: Report) => SessionRecord) => {
  const initial: RecordEntry = { toolkit, approvals: [], usage: noUsage, interrupted: false };
  const entries = new Map<string, RecordEntry>();
  return (sessionId, report) => {
    const current = (): RecordEntry => entries.get(sessionId) ?? initial;
    const change = (changed: Partial<RecordEntry>): void => {
      const entry = compact({ ...current(), ...changed });
      if (isInitial(entry, initial)) entries.delete(sessionId);
      else entries.set(sessionId, entry);
    };
    const setApprovals = (approvals: RecordEntry['approvals']): void =>
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
          if (report({ type: 'stateChanged', name: 'groups', state, patches })) return;
          change({ pending: { groups: before, messages: [], ...current().pending } });
        },
      },
      get state() {
        const { title, toolkit: now, approvals, usage } = current();
        const { interrupted, lastCall, earlierCalls } = current();
        return {
          ...(title !== undefined && { title }),
          groups: groupsOf(now),
          approvals,
          usage,
          interrupted,
          ...(lastCall !== undefined && { lastCall }),
          ...(earlierCalls !== undefined && { earlierCalls }),
        };
      },
      rename: (title) => {
        change({ title });
      },
      begin: (callId) => change(startCall(current(), callId)),
      spend: (usage) => change({ usage: addUsage(current().usage, usage) }),
      end: (callId, { reason, usage }, hadTurn) => {
        const { lastCall, earlierCalls, usage: counted } = current();
        if (hadTurn && reason === 'interrupted') change({ interrupted: true });
        if (lastCall?.callId !== callId) {
          // A call of another branch has started since.
          if (earlierCalls !== undefined) change({ earlierCalls: withEnded(earlierCalls, callId) });
          return;
        }
        // Only the reply knows the usage of calls below that were not repeated.
        const whole = largerUsage(counted, addUsage(lastCall.usageBefore, usage));
        change({ usage: whole, lastCall: Object.freeze({ ...lastCall, hasEnded: true }) });
      },
      awaitApproval: (approval, reportChange) => {
        const { approvals } = current();
        const path = [approvals.length];
        setApprovals([...approvals, approval]);
        const added = { op: 'add', path, value: approval } as const;
        reportChange(approvalsChange(current(), added));
        return () => {
          const index = current().approvals.indexOf(approval);
          if (index === -1) return;
          setApprovals(current().approvals.filter((other) => other !== approval));
          reportChange(approvalsChange(current(), { op: 'remove', path: [index] }));
        };
      },
      reportMessages: (changed) => {
        if (report(changed)) return;
        const { pending } = current();
        change({ pending: { ...pending, messages: [...(pending?.messages ?? []), changed] } });
      },
      takePending: () => {
        const { pending, toolkit: now } = current();
        if (pending === undefined) return [];
        change({ pending: undefined });
        const state = groupsOf(now);
        const patches = groupPatches(pending.groups ?? state, state);
        const groups: StateChange = { type: 'stateChanged', name: 'groups', state, patches };
        return [...pending.messages, ...(patches.length > 0 ? [groups] : [])];
      },
      restore: ({ title, groups, approvals, usage, interrupted, lastCall, earlierCalls }) => {
        const regrouped = withGroups(current().toolkit, groups, initial.toolkit);
        const calls = { lastCall, earlierCalls };
        change({
          title,
          toolkit: regrouped,
          approvals,
          usage,
          interrupted,
          ...calls,
          pending: undefined,
        });
      },
    };
  };
};

/** Only has what is set: there may be many idle sessions, and most of them were just interrupted. */
const compact = ({
  toolkit,
  approvals,
  usage,
  interrupted,
  title,
  lastCall,
  earlierCalls,
  pending,
}: RecordEntry): RecordEntry => {
  const always = { toolkit, approvals, usage, interrupted };
  const hasMore = (title ?? lastCall ?? earlierCalls ?? pending) !== undefined;
  return hasMore ? { ...always, title, lastCall, earlierCalls, pending } : always;
};

const approvalsChange = (
  { approvals: state }: RecordEntry,
  ...patches: StateChange['patches']
): StateChange => ({ type: 'stateChanged', name: 'approvals', state, patches });

const isInitial = (entry: RecordEntry, initial: RecordEntry): boolean =>
  entry.title === undefined &&
  entry.approvals.length === 0 &&
  !entry.interrupted &&
  entry.lastCall === undefined &&
  entry.earlierCalls === undefined &&
  entry.pending === undefined &&
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

export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Converts patches of a `stateChanged` event to a JSON Patch (RFC 6902). Values are copied. */
export const toJsonPatch = (patches: readonly StatePatch[]): readonly JsonPatchOperation[] =>
  patches.flatMap(({ op, path, value }): readonly JsonPatchOperation[] => {
    const at = path.map((key) => `/${escaped(String(key))}`).join('');
    if (op === 'remove') return [{ op, path: at }];
    const copy = jsonCopy(value);
    if (copy !== undefined) return [{ op, path: at, value: copy }];
    // In JSON, a field without a value is absent, and such an item of a list is null.
    if (typeof path.at(-1) === 'number') return [{ op, path: at, value: null }];
    return op === 'replace' ? [{ op: 'remove', path: at }] : [];
  });

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

export const jsonCopy = (value: unknown): unknown => {
  const text: unknown = JSON.stringify(value, (key, part: unknown) =>
    key === '__proto__' ? undefined : part,
  );
  return typeof text === 'string' ? JSON.parse(text) : undefined;
};

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

export const maxEarlierCalls = 100;

interface RecentCalls extends Pick<SessionState, 'usage'> {
  readonly lastCall?: LastCall | undefined;
  readonly earlierCalls?: readonly EarlierCall[] | undefined;
}

type StartedCall = Required<RecentCalls> & Pick<SessionState, 'approvals' | 'interrupted'>;

export const startCall = (recent: RecentCalls, callId: string | undefined): StartedCall => {
  const { usage, lastCall } = recent;
  const calls = callsIn(recent);
  const counted = calls.find((call) => call.callId === callId)?.usage;
  const before = counted === undefined ? usage : subtractUsage(usage, counted);
  return {
    approvals: [],
    interrupted: false,
    usage: before,
    lastCall:
      callId === undefined ? undefined : frozen({ callId, usageBefore: before, hasEnded: false }),
    earlierCalls:
      lastCall?.callId === callId
        ? recent.earlierCalls
        : latestCalls(calls.filter((call) => call.callId !== callId)),
  };
};

export const callsIn = ({
  usage,
  lastCall,
  earlierCalls = [],
}: RecentCalls): readonly EarlierCall[] => {
  if (lastCall === undefined) return earlierCalls;
  const { callId, usageBefore, hasEnded } = lastCall;
  return [...earlierCalls, { callId, usage: subtractUsage(usage, usageBefore), hasEnded }];
};

export const withEnded = (calls: readonly EarlierCall[], callId: string): readonly EarlierCall[] =>
  calls.map((call) => (call.callId === callId ? frozen({ ...call, hasEnded: true }) : call));

export const latestCalls = (calls: readonly EarlierCall[]): readonly EarlierCall[] | undefined =>
  calls.length === 0 ? undefined : frozen(calls.slice(-maxEarlierCalls));

export const subtractUsage = (usage: Usage, part: Usage): Usage => ({
  inputTokens: Math.max(0, usage.inputTokens - part.inputTokens),
  outputTokens: Math.max(0, usage.outputTokens - part.outputTokens),
  cacheReadTokens: Math.max(0, usage.cacheReadTokens - part.cacheReadTokens),
  cacheWriteTokens: Math.max(0, usage.cacheWriteTokens - part.cacheWriteTokens),
});
