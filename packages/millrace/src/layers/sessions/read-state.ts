import { isObjectOrList, isRecord } from '../../values/json.js';
import { frozen } from '../../values/message.js';
import { otherFormat } from '../../values/stored-format.js';
import type { Usage } from '../../values/usage.js';
import {
  type EarlierCall,
  type LastCall,
  maxEarlierCalls,
  type PendingApproval,
  type SessionState,
  stateVersion,
  type ToolGroupStates,
} from './session-state.js';
import { type BranchEntry, treeOfState } from './session-tree.js';
import { message, toolCall } from './stored-messages.js';
import {
  count,
  exactly,
  flag,
  invalid,
  kindOf,
  listOf,
  type Location,
  name,
  objectOf,
  type Reader,
  text,
  unique,
} from './stored-values.js';

export const readState = (value: unknown): SessionState => {
  const place: Location = { path: '', isForeign: true };
  if (typeof value === 'string') {
    throw invalid(place, 'must be an object, not a string. Parse it: loadState(JSON.parse(text))');
  }
  if (!isRecord(value)) throw invalid(place, `must be an object, not ${kindOf(value)}`);
  const version = Object.hasOwn(value, 'version') ? value['version'] : undefined;
  if (version === undefined) {
    throw invalid(place, "is not a session state: it has no 'version'. Use that of saveState()");
  }
  if (version !== stateVersion) throw invalid(place, otherFormat(version, stateVersion));
  if (exceedsSize(value, maxValues)) {
    throw invalid(place, `holds more than ${maxValues} values, which is the limit`);
  }
  return frozen(readTree(stateOf(value, place)));
};

/** Throws `invalidState` if its branches do not fit its messages. */
const readTree = (state: SessionState): SessionState => {
  if (state.branches !== undefined) treeOfState(state);
  return state;
};

const maxValues = 2_000_000;

export const toState = (parts: SessionState): SessionState =>
  frozen(stateOf(parts, { path: '', isForeign: false }));

/** A tool call without a result is valid here: the next call repairs it, or is strict. */
const messages: Reader<SessionState['messages']> = (value, location) =>
  unique(listOf(message, 100_000)(value, location), ({ id }) => id, location);

const after: Reader<string | null> = (value, place) => (value === null ? null : name(value, place));

const branches = listOf(objectOf<BranchEntry>({ at: count, after, message }), 100_000);

const groups: Reader<ToolGroupStates> = (value, place) => {
  if (!isRecord(value)) throw invalid(place, `must be an object, not ${kindOf(value)}`);
  const entries = Object.entries(value);
  if (place.isForeign && entries.length > 10_000) {
    throw invalid(place, `has ${entries.length} entries: the limit is 10000`);
  }
  return Object.fromEntries(
    entries.map(([group, active]) => {
      if (group === '__proto__') throw invalid(place, "has a key '__proto__'");
      return [name(group, place), flag(active, { ...place, path: `${place.path}.${group}` })];
    }),
  );
};

const approvals: Reader<SessionState['approvals']> = (value, place) =>
  unique(
    listOf(approval, 10_000)(value, place),
    ({ callId, toolCall: { id } }) => JSON.stringify([callId, id]),
    place,
  );

const earlierCalls: Reader<readonly EarlierCall[]> = (value, place) =>
  unique(listOf(earlierCall, maxEarlierCalls)(value, place), ({ callId }) => callId, place);

export const exceedsSize = (value: unknown, limit: number): boolean => {
  const open: object[] = isObjectOrList(value) ? [value] : [];
  let left = limit;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // A list may claim to be longer than it is.
    if (Array.isArray(next) && next.length > left) return true;
    const held: readonly unknown[] = Object.values(next);
    left -= held.length;
    if (left < 0) return true;
    for (const part of held) if (isObjectOrList(part)) open.push(part);
  }
  return false;
};

const usage = objectOf<Usage>({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});

const lastCall = objectOf<LastCall>({ callId: name, usageBefore: usage, hasEnded: flag });
const earlierCall = objectOf<EarlierCall>({ callId: name, usage, hasEnded: flag });

const approval = objectOf<PendingApproval>({ callId: name, toolCall });

const stateOf = objectOf<SessionState>(
  {
    version: exactly(stateVersion),
    messages,
    branches,
    title: text,
    groups,
    approvals,
    usage,
    interrupted: flag,
    lastCall,
    earlierCalls,
  },
  'branches',
  'title',
  'lastCall',
  'earlierCalls',
);
