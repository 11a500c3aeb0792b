import {
  type AssistantBlock,
  type AssistantMessage,
  type ContentBlock,
  frozen,
  isContentBlock,
  type Message,
  plainBlock,
  type ThinkingBlock,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  type UserMessage,
} from '../../values/message.js';
import { isObject, isRecord, isTooDeep } from '../../values/json.js';
import type { Usage } from '../../values/usage.js';
import {
  type EarlierCall,
  type LastCall,
  mostEarlierCalls,
  type PendingApproval,
  type SessionState,
  stateVersion,
  type ToolGroupStates,
} from './session-state.js';
import { respelled } from '../../memories/former-spelling.js';
import { messageOf, MillraceError } from '../../values/errors.js';

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
  if (version !== 1 && version !== stateVersion) throw otherVersion(version, place);
  if (holdsMore(value, mostValues)) {
    throw wrong(place, `holds more than ${mostValues} values: so much is not taken`);
  }
  const state = version === 1 ? respelled({ ...value, version: stateVersion }) : value;
  return frozen(stateOf(state, place));
};

const mostValues = 2_000_000;

export const toState = (parts: SessionState): SessionState =>
  frozen(stateOf(parts, { path: '', isForeign: false }));

/** A tool call without a result is no fault: a call that reads it repairs it, or is strict. */
const messages: Read<SessionState['messages']> = (value, place) =>
  distinct(listOf(message, 100_000)(value, place), ({ id }) => id, place);

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

const approvals: Read<SessionState['approvals']> = (value, place) =>
  distinct(
    listOf(approval, 10_000)(value, place),
    ({ callId, toolCall: { id } }) => JSON.stringify([callId, id]),
    place,
  );

const earlierCalls: Read<readonly EarlierCall[]> = (value, place) =>
  distinct(listOf(earlierCall, mostEarlierCalls)(value, place), ({ callId }) => callId, place);

const otherVersion = (version: unknown, place: Place) =>
  typeof version === 'number' && version > stateVersion
    ? wrong(
        place,
        `is of version ${version}, and this version of Millrace knows states up to version ${stateVersion}. Load it with a newer one`,
      )
    : wrong({ ...place, path: 'version' }, `must be ${stateVersion}`);

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

const mostBlocks = 10_000;

const detailsOf: Read<unknown> = (value, place) => {
  if (place.isForeign) return json(value, place);
  try {
    return isTooDeep(value) ? undefined : jsonCopy(value);
  } catch {
    return undefined;
  }
};

const message: Read<Message> = (value, place) => {
  const role = ownField(value, 'role');
  if (role === 'user' || role === 'assistant' || role === 'tool') {
    return messageReaders[role](value, place);
  }
  throw wrong(place, "is no message: its 'role' must be 'user', 'assistant' or 'tool'");
};

const assistantBlock: Read<AssistantBlock> = (value, place) => {
  const type = ownField(value, 'type');
  if (type === 'tool_call') return toolCall(value, place);
  return type === 'thinking' ? thinking(value, place) : contentBlock(value, place);
};

const assistantBlocks: Read<readonly AssistantBlock[]> = (value, place) => {
  const blocks = listOf(assistantBlock, mostBlocks)(value, place);
  const uses = blocks.filter((block) => block.type === 'tool_call');
  distinct(uses, ({ id }) => id, place);
  return blocks;
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

const json: Read<unknown> = (value, place) => {
  if (isTooDeep(value)) throw wrong(place, 'is nested more than 100 levels deep');
  if (place.isForeign) refuseHostile(value, place);
  try {
    return jsonCopy(value) ?? null;
  } catch (cause) {
    throw wrong(place, `is nothing that JSON can hold: ${messageOf(cause)}`);
  }
};

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

interface Place {
  readonly path: string;
  readonly isForeign: boolean;
}

type Read<T> = (value: unknown, place: Place) => T;

const wrong = ({ path }: Place, what: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state cannot be used: ${path === '' ? 'it' : `'${path}'`} ${what}.`,
  );

const objectOf =
  <T extends object>(
    fields: { readonly [Name in keyof T]-?: Read<Exclude<T[Name], undefined>> },
    ...optional: readonly (keyof T)[]
  ): Read<T> =>
  (value, place) => {
    const known = Object.entries<Read<unknown>>(fields);
    const at = fieldsOf(
      value,
      place,
      known.map(([name]) => name),
    );
    const read = known.flatMap(([name, readField]) => {
      const field = ownField(value, name);
      if (field !== undefined) return [[name, readField(field, at(name))] as const];
      if (optional.some((other) => other === name)) return [];
      throw wrong(at(name), 'is missing');
    });
    // What has no value is left out: such are the details of a tool that JSON cannot hold.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return Object.fromEntries(read.filter(([, field]) => field !== undefined)) as T;
  };

const fieldsOf = (
  value: unknown,
  place: Place,
  known: readonly string[],
): ((name: string) => Place) => {
  if (!isRecord(value)) throw wrong(place, `must be an object, not ${kindOf(value)}`);
  const at = (name: string): Place => ({
    ...place,
    path: place.path === '' ? name : `${place.path}.${name}`,
  });
  const unknown = place.isForeign && Object.keys(value).find((name) => !known.includes(name));
  if (typeof unknown === 'string') {
    throw wrong(at(shortened(unknown)), `is not known. There are: ${known.join(', ')}`);
  }
  return at;
};

const listOf =
  <T>(read: Read<T>, most: number): Read<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw wrong(place, `must be a list, not ${kindOf(value)}`);
    const items: readonly unknown[] = value;
    if (place.isForeign && items.length > most) {
      throw wrong(place, `has ${items.length} entries: more than ${most} are not taken`);
    }
    return Array.from(items, (item, index) =>
      read(item, { ...place, path: `${place.path}[${index}]` }),
    );
  };

const text: Read<string> = (value, place) => {
  if (typeof value === 'string') return value;
  throw wrong(place, `must be a text, not ${kindOf(value)}`);
};

const longestName = 10_000;

const name: Read<string> = (value, place) => {
  const read = text(value, place);
  if (read === '') throw wrong(place, 'is empty');
  if (place.isForeign && read.length > longestName) {
    throw wrong(place, `has ${read.length} characters: more than ${longestName} are not taken`);
  }
  return read;
};

const flag: Read<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw wrong(place, `must be true or false, not ${kindOf(value)}`);
};

const count: Read<number> = (value, place) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw wrong(
    place,
    `must be a number from 0, not ${typeof value === 'number' ? value : kindOf(value)}`,
  );
};

const distinct = <T>(
  items: readonly T[],
  idOf: (item: T) => string,
  place: Place,
): readonly T[] => {
  const seen = new Set<string>();
  const twice = items.find((item) => seen.size === seen.add(idOf(item)).size);
  if (twice === undefined) return items;
  throw wrong(place, `holds the id '${shortened(idOf(twice))}' twice`);
};

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

const shortened = (key: string): string => (key.length > 60 ? `${key.slice(0, 60)}…` : key);

const exactly =
  <const T extends string | number>(value: T): Read<T> =>
  () =>
    value;

const ofType =
  <T>(type: string, read: Read<T>): Read<T> =>
  (value, place) => {
    if (!isRecord(value) || ownField(value, 'type') === type) return read(value, place);
    throw wrong(place, `must be of the type '${type}'`);
  };

const usage = objectOf<Usage>({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});

const lastCall = objectOf<LastCall>({ callId: name, usageBefore: usage, hasEnded: flag });
const earlierCall = objectOf<EarlierCall>({ callId: name, usage, hasEnded: flag });

const toolCall = ofType(
  'tool_call',
  objectOf<ToolCallBlock>(
    {
      type: exactly('tool_call'),
      id: name,
      // A model may have asked for a tool without a name.
      name: text,
      input: jsonObject,
      invalidInput: text,
      refusal: text,
    },
    'invalidInput',
    'refusal',
  ),
);

const approval = objectOf<PendingApproval>({ callId: name, toolCall });

const thinking = objectOf<ThinkingBlock>(
  { type: exactly('thinking'), text, signature: text, redacted: flag },
  'signature',
  'redacted',
);

const contents = listOf(contentBlock, mostBlocks);

const toolResult = ofType(
  'tool_result',
  objectOf<ToolResultBlock>(
    {
      type: exactly('tool_result'),
      toolCallId: name,
      content: contents,
      isError: flag,
      note: text,
      details: detailsOf,
      suspended: (value, place) => ({
        request: null,
        ...objectOf<{ request?: unknown }>({ request: json }, 'request')(value, place),
      }),
    },
    'note',
    'details',
    'suspended',
  ),
);

const messageReaders: Readonly<Record<Message['role'], Read<Message>>> = {
  user: objectOf<UserMessage>({ id: name, role: exactly('user'), content: contents, name }, 'name'),
  assistant: objectOf<AssistantMessage>(
    { id: name, role: exactly('assistant'), content: assistantBlocks, name },
    'name',
  ),
  tool: objectOf<ToolMessage>({
    id: name,
    role: exactly('tool'),
    content: listOf(toolResult, mostBlocks),
  }),
};

const stateOf = objectOf<SessionState>(
  {
    version: exactly(stateVersion),
    messages,
    groups,
    approvals,
    usage,
    interrupted: flag,
    lastCall,
    earlierCalls,
  },
  'lastCall',
  'earlierCalls',
);

export const jsonCopy = (value: unknown): unknown => {
  const text: unknown = JSON.stringify(value, (key, part: unknown) =>
    key === '__proto__' ? undefined : part,
  );
  return typeof text === 'string' ? JSON.parse(text) : undefined;
};
