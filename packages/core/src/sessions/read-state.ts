import { frozen } from '../frozen.js';
import { isRecord } from '../json.js';
import { unpaired } from '../run.js';
import { withResults } from '../tools/suspend.js';
import type { Usage } from '../usage.js';
import { holdsMore } from './holds-more.js';
import { mostEarlierCalls } from './begun-in.js';
import {
  count,
  distinct,
  fieldsOf,
  flag,
  kindOf,
  listOf,
  name,
  type Place,
  type Read,
  wrong,
} from './read-fields.js';
import { message, toolUse } from './read-message.js';
import {
  type EarlierCall,
  type LastCall,
  type PendingApproval,
  type SessionState,
  stateVersion,
  type ToolGroupStates,
} from './session-state.js';

/** Reads a state from outside, or throws an `invalidState` error that says what is wrong with it, and where. */
export const readState = (value: unknown): SessionState => {
  const place: Place = { path: '', isForeign: true };
  if (typeof value === 'string') {
    throw wrong(place, 'must be an object, not a text. Parse it: loadState(JSON.parse(text))');
  }
  if (!isRecord(value)) throw wrong(place, `must be an object, not ${kindOf(value)}`);
  const version = Object.hasOwn(value, 'version') ? value['version'] : undefined;
  if (version === undefined) {
    throw wrong(place, "is no state of a session: it has no 'version'. Pass what saveState() gave");
  }
  if (version !== stateVersion) throw otherVersion(version, place);
  if (holdsMore(value, mostValues)) {
    throw wrong(place, `holds more than ${mostValues} values: so much is not taken`);
  }
  return stateOf(value, place);
};

/** A hundred thousand messages have half as many. */
const mostValues = 2_000_000;

/** Copies what a session is made of as a state. */
export const toState = (parts: SessionState): SessionState =>
  stateOf(parts, { path: '', isForeign: false });

const stateOf: Read<SessionState> = (value, place) => {
  const fields = fieldsOf(value, place, known);
  return frozen({
    version: stateVersion,
    messages: fields.read('messages', messages),
    groups: fields.read('groups', groups),
    approvals: fields.read('approvals', approvals),
    usage: fields.read('usage', usage),
    interrupted: fields.read('interrupted', flag),
    ...(fields.has('lastCall') && { lastCall: fields.read('lastCall', lastCall) }),
    ...(fields.has('earlierCalls') && { earlierCalls: fields.read('earlierCalls', earlierCalls) }),
  });
};

const known: readonly (keyof SessionState)[] = [
  'version',
  'messages',
  'groups',
  'approvals',
  'usage',
  'interrupted',
  'lastCall',
  'earlierCalls',
];

const messages: Read<SessionState['messages']> = (value, place) => {
  const read = distinct(listOf(message, 100_000)(value, place), ({ id }) => id, place);
  const fault = unpaired(withResults(read));
  if (fault === undefined) return read;
  throw wrong(place, `holds ${fault}`);
};

const groups: Read<ToolGroupStates> = (value, place) => {
  if (!isRecord(value)) throw wrong(place, `must be an object, not ${kindOf(value)}`);
  const entries = Object.entries(value);
  if (place.isForeign && entries.length > 10_000) {
    throw wrong(place, `has ${entries.length} entries: more than 10000 are not taken`);
  }
  return Object.fromEntries(
    entries.map(([group, active]) => {
      if (group === '__proto__') throw wrong(place, "has a key '__proto__'");
      return [name(group, place), flag(active, { ...place, path: `${place.path}.${group}` })];
    }),
  );
};

const approval: Read<PendingApproval> = (value, place) => {
  const fields = fieldsOf(value, place, ['callId', 'toolUse']);
  return { callId: fields.read('callId', name), toolUse: fields.read('toolUse', toolUse) };
};

const approvals: Read<SessionState['approvals']> = (value, place) =>
  distinct(
    listOf(approval, 10_000)(value, place),
    ({ callId, toolUse: { id } }) => JSON.stringify([callId, id]),
    place,
  );

const usage: Read<Usage> = (value, place) => {
  const fields = fieldsOf(value, place, [
    'inputTokens',
    'outputTokens',
    'cacheReadTokens',
    'cacheWriteTokens',
  ]);
  return {
    inputTokens: fields.read('inputTokens', count),
    outputTokens: fields.read('outputTokens', count),
    cacheReadTokens: fields.read('cacheReadTokens', count),
    cacheWriteTokens: fields.read('cacheWriteTokens', count),
  };
};

const lastCall: Read<LastCall> = (value, place) => {
  const fields = fieldsOf(value, place, ['callId', 'usageBefore', 'hasEnded']);
  return {
    callId: fields.read('callId', name),
    usageBefore: fields.read('usageBefore', usage),
    hasEnded: fields.read('hasEnded', flag),
  };
};

const earlierCall: Read<EarlierCall> = (value, place) => {
  const fields = fieldsOf(value, place, ['callId', 'usage', 'hasEnded']);
  return {
    callId: fields.read('callId', name),
    usage: fields.read('usage', usage),
    hasEnded: fields.read('hasEnded', flag),
  };
};

const earlierCalls: Read<readonly EarlierCall[]> = (value, place) =>
  distinct(listOf(earlierCall, mostEarlierCalls)(value, place), ({ callId }) => callId, place);

const otherVersion = (version: unknown, place: Place) =>
  typeof version === 'number' && version > stateVersion
    ? wrong(
        place,
        `is of version ${version}, and this version of Millrace knows states up to version ${stateVersion}. Load it with a newer one`,
      )
    : wrong({ ...place, path: 'version' }, `must be ${stateVersion}`);
