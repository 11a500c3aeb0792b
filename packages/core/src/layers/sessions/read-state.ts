import {
  type AssistantBlock,
  type AssistantMessage,
  type Citation,
  type ContentBlock,
  frozen,
  isContentBlock,
  type Message,
  plainBlock,
  type ResultSource,
  type Suspended,
  type Suspension,
  type Suspends,
  type TextBlock,
  type ThinkingBlock,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  type VendorBlock,
  type VendorData,
  type VendorFacts,
  type UserMessage,
  type WaitingBelow,
} from '../../values/message.js';
import { isObject, isRecord, isTooDeep } from '../../values/json.js';
import type { Usage } from '../../values/usage.js';
import {
  type EarlierCall,
  jsonCopy,
  type LastCall,
  maxEarlierCalls,
  type PendingApproval,
  type SessionState,
  stateVersion,
  type ToolGroupStates,
} from './session-state.js';
import { otherFormat } from '../../values/stored-format.js';
import { messageOf, MillraceError } from '../../values/errors.js';

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
  return frozen(stateOf(value, place));
};

const maxValues = 2_000_000;

export const toState = (parts: SessionState): SessionState =>
  frozen(stateOf(parts, { path: '', isForeign: false }));

/** A tool call without a result is valid here: the next call repairs it, or is strict. */
const messages: Reader<SessionState['messages']> = (value, location) =>
  unique(listOf(message, 100_000)(value, location), ({ id }) => id, location);

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
  const open: object[] = isObject(value) ? [value] : [];
  let left = limit;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // A list may claim to be longer than it is.
    if (Array.isArray(next) && next.length > left) return true;
    const held: readonly unknown[] = Object.values(next);
    left -= held.length;
    if (left < 0) return true;
    for (const part of held) if (isObject(part)) open.push(part);
  }
  return false;
};

const maxBlocks = 10_000;

const detailsOf: Reader<unknown> = (value, place) => {
  if (place.isForeign) return json(value, place);
  try {
    return isTooDeep(value) ? undefined : jsonCopy(value);
  } catch {
    return undefined;
  }
};

const message: Reader<Message> = (value, place) => {
  const role = ownField(value, 'role');
  if (role === 'user' || role === 'assistant' || role === 'tool') {
    return messageReaders[role](value, place);
  }
  throw invalid(place, "is not a message: its 'role' must be 'user', 'assistant' or 'tool'");
};

const assistantBlock: Reader<AssistantBlock> = (value, place) => {
  const type = ownField(value, 'type');
  switch (type) {
    case 'tool_call':
      return toolCall(value, place);
    case 'thinking':
      return thinking(value, place);
    case 'vendor':
      return vendorBlock(value, place);
    case 'text':
      return textOfAnswer(value, place);
    default:
      return contentBlock(value, place);
  }
};

const assistantBlocks: Reader<readonly AssistantBlock[]> = (value, place) => {
  const blocks = listOf(assistantBlock, maxBlocks)(value, place);
  const uses = blocks.filter((block) => block.type === 'tool_call');
  unique(uses, ({ id }) => id, place);
  return blocks;
};

const contentBlock: Reader<ContentBlock> = (value, place) => {
  if (!isContentBlock(value)) throw invalid(place, 'is not a block of text, image, audio or file');
  const plain = plainBlock(value);
  fieldsOf(value, place, Object.keys(plain));
  if (plain.type !== 'text') {
    const at: Location = { ...place, path: `${place.path}.source` };
    fieldsOf(ownField(value, 'source'), at, Object.keys(plain.source));
  }
  return plain;
};

const ownField = (value: unknown, field: string): unknown =>
  isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined;

const json: Reader<unknown> = (value, place) => {
  if (isTooDeep(value)) throw invalid(place, 'is nested more than 100 levels deep');
  if (place.isForeign) rejectHostile(value, place);
  try {
    return jsonCopy(value) ?? null;
  } catch (cause) {
    throw invalid(place, `cannot be represented as JSON: ${messageOf(cause)}`);
  }
};

const jsonObject: Reader<Readonly<Record<string, unknown>>> = (value, place) => {
  const copy = isRecord(value) ? json(value, place) : undefined;
  if (isRecord(copy)) return copy;
  throw invalid(place, 'must be an object');
};

const rejectHostile = (value: unknown, place: Location): void => {
  if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      if (key === '__proto__') throw invalid(place, "has a key '__proto__'");
      rejectHostile(part, place);
    }
  } else if (
    !['string', 'boolean', 'undefined'].includes(typeof value) &&
    value !== null &&
    !Number.isFinite(value)
  ) {
    throw invalid(place, `holds a ${typeof value}, which JSON cannot represent`);
  }
};

interface Location {
  readonly path: string;
  readonly isForeign: boolean;
}

type Reader<T> = (value: unknown, place: Location) => T;

const invalid = ({ path }: Location, what: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The state cannot be used: ${path === '' ? 'it' : `'${path}'`} ${what}.`,
  );

const objectOf =
  <T extends object>(
    fields: { readonly [Name in keyof T]-?: Reader<Exclude<T[Name], undefined>> },
    ...optional: readonly (keyof T)[]
  ): Reader<T> =>
  (value, place) => {
    const known = Object.entries<Reader<unknown>>(fields);
    const at = fieldsOf(
      value,
      place,
      known.map(([name]) => name),
    );
    const read = known.flatMap(([name, readField]) => {
      const field = ownField(value, name);
      if (field !== undefined) return [[name, readField(field, at(name))] as const];
      if (optional.some((other) => other === name)) return [];
      throw invalid(at(name), 'is missing');
    });
    // Omits fields without a value, such as tool details that are not JSON.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return Object.fromEntries(read.filter(([, field]) => field !== undefined)) as T;
  };

const fieldsOf = (
  value: unknown,
  place: Location,
  known: readonly string[],
): ((name: string) => Location) => {
  if (!isRecord(value)) throw invalid(place, `must be an object, not ${kindOf(value)}`);
  const at = (name: string): Location => ({
    ...place,
    path: place.path === '' ? name : `${place.path}.${name}`,
  });
  const unknown = place.isForeign && Object.keys(value).find((name) => !known.includes(name));
  if (typeof unknown === 'string') {
    throw invalid(at(truncated(unknown)), `is unknown. Known fields: ${known.join(', ')}`);
  }
  return at;
};

const listOf =
  <T>(read: Reader<T>, most: number): Reader<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw invalid(place, `must be a list, not ${kindOf(value)}`);
    const items: readonly unknown[] = value;
    if (place.isForeign && items.length > most) {
      throw invalid(place, `has ${items.length} entries: the limit is ${most}`);
    }
    return Array.from(items, (item, index) =>
      read(item, { ...place, path: `${place.path}[${index}]` }),
    );
  };

const text: Reader<string> = (value, place) => {
  if (typeof value === 'string') return value;
  throw invalid(place, `must be a string, not ${kindOf(value)}`);
};

const maxNameLength = 10_000;

const name: Reader<string> = (value, place) => {
  const read = text(value, place);
  if (read === '') throw invalid(place, 'is empty');
  if (place.isForeign && read.length > maxNameLength) {
    throw invalid(place, `has ${read.length} characters: the limit is ${maxNameLength}`);
  }
  return read;
};

const flag: Reader<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw invalid(place, `must be true or false, not ${kindOf(value)}`);
};

const count: Reader<number> = (value, place) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw invalid(
    place,
    `must be a non-negative number, not ${typeof value === 'number' ? value : kindOf(value)}`,
  );
};

const unique = <T>(
  items: readonly T[],
  idOf: (item: T) => string,
  place: Location,
): readonly T[] => {
  const seen = new Set<string>();
  const duplicate = items.find((item) => seen.size === seen.add(idOf(item)).size);
  if (duplicate === undefined) return items;
  throw invalid(place, `holds the id '${truncated(idOf(duplicate))}' twice`);
};

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};

const truncated = (key: string): string => (key.length > 60 ? `${key.slice(0, 60)}…` : key);

const oneOfThe =
  <const T extends readonly unknown[]>(...values: T): Reader<T[number]> =>
  (value, place) => {
    const found = values.find((it) => it === value);
    if (found === undefined) throw invalid(place, `must be one of ${values.join(', ')}`);
    return found;
  };

const exactly =
  <const T extends string | number>(value: T): Reader<T> =>
  () =>
    value;

const ofType =
  <T>(type: string, read: Reader<T>): Reader<T> =>
  (value, place) => {
    if (!isRecord(value) || ownField(value, 'type') === type) return read(value, place);
    throw invalid(place, `must be of the type '${type}'`);
  };

const usage = objectOf<Usage>({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});

const lastCall = objectOf<LastCall>({ callId: name, usageBefore: usage, hasEnded: flag });
const earlierCall = objectOf<EarlierCall>({ callId: name, usage, hasEnded: flag });

const vendorData = objectOf<VendorData>({ vendor: name, data: json });

const vendorBlock = objectOf<VendorBlock>({
  type: exactly('vendor'),
  vendor: name,
  kind: text,
  data: json,
});

const citation = objectOf<Citation>(
  {
    url: text,
    title: text,
    citedText: text,
    documentIndex: count,
    fileId: text,
    location: objectOf<NonNullable<Citation['location']>>({
      unit: oneOfThe('page', 'character', 'block'),
      start: count,
      end: count,
    }),
    start: count,
    end: count,
    vendorData,
  },
  'url',
  'title',
  'citedText',
  'documentIndex',
  'fileId',
  'location',
  'start',
  'end',
  'vendorData',
);

/** Text of a model, which has fields that other text has not. */
const textOfAnswer = objectOf<TextBlock>(
  {
    type: exactly('text'),
    text,
    citations: listOf(citation, maxBlocks),
    separate: flag,
    phase: oneOfThe('commentary', 'final_answer'),
    cache: oneOfThe(true, '5m', '1h'),
    vendorData,
  },
  'citations',
  'separate',
  'phase',
  'cache',
  'vendorData',
);

const source: Reader<ResultSource> = oneOfThe('client', 'program');

const toolCall = ofType(
  'tool_call',
  objectOf<ToolCallBlock>(
    {
      type: exactly('tool_call'),
      id: name,
      // A model may call a tool without a name.
      name: text,
      input: jsonObject,
      invalidInput: text,
      refusal: text,
      suspends: objectOf<Suspends>({ request: json, from: source }, 'from'),
      vendorData,
    },
    'invalidInput',
    'refusal',
    'suspends',
    'vendorData',
  ),
);

const approval = objectOf<PendingApproval>({ callId: name, toolCall });

const thinking = objectOf<ThinkingBlock>(
  { type: exactly('thinking'), text, signature: text, redacted: flag, vendorData },
  'signature',
  'redacted',
  'vendorData',
);

const contents = listOf(contentBlock, maxBlocks);

const below = objectOf<WaitingBelow>({
  rootId: name,
  waiting: listOf(objectOf<Suspension>({ toolCall, request: json, from: source }), maxBlocks),
  steps: jsonObject,
});

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
        ...objectOf<Partial<Suspended> & Pick<Suspended, 'from'>>(
          { request: json, from: source, below },
          'request',
          'below',
        )(value, place),
      }),
      from: exactly('client'),
    },
    'note',
    'details',
    'suspended',
    'from',
  ),
);

const counts: Reader<Readonly<Record<string, number>>> = (value, place) =>
  Object.fromEntries(
    Object.entries(jsonObject(value, place)).map(([key, it]) => [key, count(it, place)]),
  );

const vendorFacts = objectOf<VendorFacts>(
  {
    name,
    id: text,
    model: text,
    container: objectOf<NonNullable<VendorFacts['container']>>(
      { id: text, expiresAt: text },
      'expiresAt',
    ),
    reasoningTokens: count,
    cacheWrites: counts,
    toolUses: counts,
    stopReason: text,
    stopSequence: text,
    refusal: objectOf<NonNullable<VendorFacts['refusal']>>(
      { category: text, explanation: text },
      'category',
      'explanation',
    ),
    stopDetails: json,
    serviceTier: text,
  },
  'name',
  'id',
  'model',
  'container',
  'reasoningTokens',
  'cacheWrites',
  'toolUses',
  'stopReason',
  'stopSequence',
  'refusal',
  'stopDetails',
  'serviceTier',
);

const messageReaders: Readonly<Record<Message['role'], Reader<Message>>> = {
  user: objectOf<UserMessage>({ id: name, role: exactly('user'), content: contents, name }, 'name'),
  assistant: objectOf<AssistantMessage>(
    { id: name, role: exactly('assistant'), content: assistantBlocks, name, vendor: vendorFacts },
    'name',
    'vendor',
  ),
  tool: objectOf<ToolMessage>({
    id: name,
    role: exactly('tool'),
    content: listOf(toolResult, maxBlocks),
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
