import { frozen } from '../frozen.js';
import { isRecord, isTooDeep } from '../json.js';
import { unpaired } from '../run.js';
import { withResults } from '../tools/suspend.js';
import type { Usage } from '../usage.js';
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
  text,
} from './read-fields.js';
import {
  type EarlierCall,
  type LastCall,
  type PendingApproval,
  type SessionState,
  stateVersion,
  type ToolGroupStates,
} from './session-state.js';
import {
  type AssistantBlock,
  type ContentBlock,
  isContentBlock,
  type Message,
  plainBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../message.js';
import { jsonCopy } from './json-copy.js';
import { messageOf } from '../errors.js';

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

/** Tells whether a value holds more than so many others, at whatever depth, without looking at more than that. What stands in many places counts in each: a copy has it there. */
export const holdsMore = (value: unknown, most: number): boolean => {
  const open: object[] = isObject(value) ? [value] : [];
  let left = most;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // A list may say that it is longer than it is.
    if (Array.isArray(next) && next.length > left) return true;
    const held: readonly unknown[] = Object.values(next);
    left -= held.length;
    if (left < 0) return true;
    for (const part of held) if (isObject(part)) open.push(part);
  }
  return false;
};

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Blocks that a message may have. */
const mostBlocks = 10_000;

/** Reads a message of whatever role. */
const message: Read<Message> = (value, place) => {
  const role = ownField(value, 'role');
  switch (role) {
    case 'user': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content', 'name']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', listOf(contentBlock, mostBlocks)),
        ...(fields.has('name') && { name: fields.read('name', name) }),
      };
    }
    case 'assistant': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content', 'name']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', assistantBlocks),
        ...(fields.has('name') && { name: fields.read('name', name) }),
      };
    }
    case 'tool': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', listOf(toolResult, mostBlocks)),
      };
    }
    default:
      throw wrong(place, "is no message: its 'role' must be 'user', 'assistant' or 'tool'");
  }
};

/** Reads what asks for one run of a tool. */
const toolUse: Read<ToolUseBlock> = (value, place) => {
  const known = ['type', 'id', 'name', 'input', 'invalidInput', 'refusal'];
  const fields = fieldsOf(value, place, known);
  if (ownField(value, 'type') !== 'tool_use') throw wrong(place, "must be of the type 'tool_use'");
  return {
    type: 'tool_use',
    id: fields.read('id', name),
    // A model may have asked for a tool without a name.
    name: fields.read('name', text),
    input: fields.read('input', jsonObject),
    ...(fields.has('invalidInput') && { invalidInput: fields.read('invalidInput', text) }),
    ...(fields.has('refusal') && { refusal: fields.read('refusal', text) }),
  };
};

const toolResult: Read<ToolResultBlock> = (value, place) => {
  const known = ['type', 'toolUseId', 'content', 'isError', 'note', 'details', 'suspended'];
  const fields = fieldsOf(value, place, known);
  if (ownField(value, 'type') !== 'tool_result') {
    throw wrong(place, "must be of the type 'tool_result'");
  }
  const details = fields.has('details') ? fields.read('details', detailsOf) : undefined;
  return {
    type: 'tool_result',
    toolUseId: fields.read('toolUseId', name),
    content: fields.read('content', listOf(contentBlock, mostBlocks)),
    isError: fields.read('isError', flag),
    ...(fields.has('note') && { note: fields.read('note', text) }),
    ...(details !== undefined && { details }),
    ...(fields.has('suspended') && { suspended: fields.read('suspended', suspended) }),
  };
};

/** They are the tool's own, and may be whatever it likes. */
const detailsOf: Read<unknown> = (value, place) => {
  if (place.isForeign) return json(value, place);
  try {
    return isTooDeep(value) ? undefined : jsonCopy(value);
  } catch {
    return undefined;
  }
};

const suspended: Read<ToolResultBlock['suspended'] & object> = (value, place) => {
  const fields = fieldsOf(value, place, ['request']);
  return { request: fields.has('request') ? fields.read('request', json) : null };
};

const assistantBlocks: Read<readonly AssistantBlock[]> = (value, place) => {
  const blocks = listOf(assistantBlock, mostBlocks)(value, place);
  const uses = blocks.filter((block) => block.type === 'tool_use');
  distinct(uses, ({ id }) => id, place);
  return blocks;
};

const assistantBlock: Read<AssistantBlock> = (value, place) => {
  switch (ownField(value, 'type')) {
    case 'tool_use':
      return toolUse(value, place);
    case 'thinking': {
      const fields = fieldsOf(value, place, ['type', 'text', 'signature', 'redacted']);
      return {
        type: 'thinking',
        text: fields.read('text', text),
        ...(fields.has('signature') && { signature: fields.read('signature', text) }),
        ...(fields.has('redacted') && { redacted: fields.read('redacted', flag) }),
      };
    }
    default:
      return contentBlock(value, place);
  }
};

const contentBlock: Read<ContentBlock> = (value, place) => {
  if (!isContentBlock(value)) throw wrong(place, 'is no block of text, image, audio or file');
  const plain = plainBlock(value);
  fieldsOf(value, place, Object.keys(plain));
  if (plain.type !== 'text') {
    const at: Place = { ...place, path: `${place.path}.source` };
    fieldsOf(ownField(value, 'source'), at, Object.keys(plain.source));
  }
  return plain;
};

const ownField = (value: unknown, field: string): unknown =>
  isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined;

/**
 * Copies what is any JSON, such as the input of a tool. A key `__proto__` and what JSON cannot hold are refused where they come from outside,
 * and left out where they are of this process.
 */
const json: Read<unknown> = (value, place) => {
  if (isTooDeep(value)) throw wrong(place, 'is nested more than 100 levels deep');
  if (place.isForeign) refuseHostile(value, place);
  try {
    return jsonCopy(value) ?? null;
  } catch (cause) {
    throw wrong(place, `is nothing that JSON can hold: ${messageOf(cause)}`);
  }
};

/** Copies a JSON object. */
const jsonObject: Read<Readonly<Record<string, unknown>>> = (value, place) => {
  const copy = isRecord(value) ? json(value, place) : undefined;
  if (isRecord(copy)) return copy;
  throw wrong(place, 'must be an object');
};

const refuseHostile = (value: unknown, place: Place): void => {
  if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      if (key === '__proto__') throw wrong(place, "has a key '__proto__'");
      refuseHostile(part, place);
    }
  } else if (
    !['string', 'boolean', 'undefined'].includes(typeof value) &&
    value !== null &&
    !Number.isFinite(value)
  ) {
    throw wrong(place, `holds a ${typeof value} that JSON cannot hold`);
  }
};
