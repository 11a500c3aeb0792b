import { exactJson, hasInexact, toExactJson } from '../values/exact-json.js';
import { defined, isRecord, isSameJson, isTooDeep, mayRepeatKeys } from '../values/json.js';
import type { Suspends, ToolCallBlock, VendorData } from '../values/message.js';

import type { ModelChunk } from './model.js';

export interface ToolPart {
  readonly type: 'tool';
  readonly id: string;
  /** Its index among the tool calls of the message. */
  readonly index: number;
  /** The index and id that the model gave it. */
  readonly key: Pick<ToolCallChunk, 'index' | 'id'> & { readonly response: number };
  readonly json: string[];
  name: string;
  /** An earlier part has its id: it is the same call again, or contradicts it. */
  readonly isAgain?: boolean;
  /** An earlier part whose name its own may continue, unless it has arguments. */
  readonly mayContinue?: ToolPart;
  /** It was continued under another id. */
  isMixed?: boolean;
  /** As the events of its deltas name it. */
  shown?: Readonly<Pick<ToolPart, 'index' | 'id' | 'name'>>;
  input?: unknown;
  refusal?: string;
  suspends?: Suspends;
  vendorData?: VendorData;
}

export interface ToolParts {
  /** Adds a chunk. `response` distinguishes the indexes of several responses in one message. */
  add(chunk: ToolCallChunk, response: number): { readonly part: ToolPart; readonly isNew: boolean };
}

export type ToolCallChunk = Extract<ModelChunk, { readonly type: 'toolCall' }>;

/**
 * Collects chunks of tool calls, after the known ones. Missing and repeated ids are replaced by unique ones. Only a name and arguments
 * that certainly belong together may run: a name that comes in pieces, or arguments that may be those of another call, get a refusal.
 */
export const createToolParts = (
  iteration: number,
  isTaken: (toolCallId: string) => boolean,
  known: readonly ToolPart[] = [],
): ToolParts => {
  const parts: ToolPart[] = [...known];
  const ids = new Set<string>();
  const freeId = createFreeId((id) => isTaken(id) || known.some((part) => part.id === id));

  const begin = (chunk: ToolCallChunk, response: number): ToolPart => {
    const { index, name = '' } = chunk;
    const given = idOf(chunk);
    const before =
      name === '' ? undefined : parts.findLast((it) => mayBeginName(it, chunk, response));
    const key = given === undefined ? undefined : `${response}/${given}`;
    const part: ToolPart = {
      type: 'tool',
      id: freeId(given ?? `call_${iteration}_${parts.length}`),
      index: parts.length,
      key: {
        response,
        ...(index === undefined ? {} : { index }),
        ...(given === undefined ? {} : { id: given }),
      },
      json: [],
      name,
      ...(key !== undefined && ids.has(key) && { isAgain: true }),
      ...(before !== undefined && { mayContinue: before }),
    };
    // Without arguments yet, the earlier call may also have got those of this one.
    if (before !== undefined && (before.isMixed === true || hasNoArguments(before)))
      before.refusal = part.refusal = notTogether;
    if (key !== undefined) ids.add(key);
    parts.push(part);
    return part;
  };
  /** Some servers give each chunk of a call an id of its own: a chunk without a name then belongs to the call at its index. */
  const mixed = (chunk: ToolCallChunk, response: number): ToolPart | undefined => {
    if (nameOf(chunk) !== undefined || chunk.input !== undefined) return undefined;
    const part = parts.findLast((it) => isNamedAt(it, chunk, response));
    if (part !== undefined) part.isMixed = true;
    return part;
  };
  return {
    add: (chunk, response) => {
      const begun =
        parts.findLast((part) => belongs(part, chunk, response)) ?? mixed(chunk, response);
      const part = begun ?? begin(chunk, response);
      if (part.name === '') part.name = chunk.name ?? '';
      if (chunk.json !== undefined) part.json.push(chunk.json);
      // Further pieces of arguments that were whole contradict them.
      if (part.input !== undefined && (chunk.json ?? '').trim() !== '') part.refusal = notTogether;
      if (chunk.input !== undefined) part.input = chunk.input;
      if (chunk.refusal !== undefined) part.refusal = chunk.refusal;
      if (chunk.suspends !== undefined) part.suspends = chunk.suspends;
      if (chunk.vendorData !== undefined) part.vendorData = chunk.vendorData;
      return { part, isNew: begun === undefined };
    },
  };
};

/** Forms of a call without arguments. */
const noArguments: ReadonlySet<string> = new Set(['', 'null', '[]', '""']);

const notTogether =
  'Not run: the name or the arguments of this tool call came in pieces that do not fit together. Call the tool again.';

const notOne =
  'Not run: several different tool calls of your message have the same id. Call the tools again, one per message.';

/**
 * The tool calls of the parts of one message. The same call again, with its id, is one. Different calls with one id get ids of their
 * own, because some servers repeat an id in parallel calls; they do not run if one of them may be a preview of another. Nor do two
 * calls if the name of the second may be the rest of that of the first.
 */
export const toToolCalls = (parts: readonly ToolPart[]): ReadonlyMap<ToolPart, ToolCallBlock> => {
  const torn = tornNames(parts);
  const calls = new Map(parts.map((part) => [part, toToolCall(part, torn)]));
  const refuse = (part: ToolPart, refusal: string): void => {
    const call = calls.get(part);
    if (call !== undefined) calls.set(part, { refusal, ...call });
  };
  for (const part of parts) {
    if (part.mayContinue === undefined || !hasNoArguments(part)) continue;
    refuse(part, notTogether);
    refuse(part.mayContinue, notTogether);
  }
  const isSame = (one: ToolPart, other: ToolPart): boolean =>
    isSameCall(calls.get(one), calls.get(other));
  for (const [first, ...others] of withOneId(parts)) {
    const distinct = others.filter((it) => !isSame(first, it));
    for (const it of others) if (!distinct.includes(it)) calls.delete(it);
    if (distinct.length === 0) continue;
    if (!areParallel([first, ...distinct], calls)) {
      for (const it of [first, ...distinct]) refuse(it, notOne);
      continue;
    }
    distinct.forEach((it, at) => {
      if (distinct.slice(0, at).some((earlier) => isSame(earlier, it))) calls.delete(it);
    });
  }
  return calls;
};

/** Whether none of different calls with one id may be a preview of another: each has an index of its own, and is whole. */
const areParallel = (
  parts: readonly ToolPart[],
  calls: ReadonlyMap<ToolPart, ToolCallBlock>,
): boolean => {
  const indexes = new Set(parts.map(({ key }) => key.index));
  if (indexes.has(undefined) || indexes.size < parts.length) return false;
  const names = new Set(parts.map(({ name }) => name));
  return parts.every((part) => {
    const { input = {}, invalidInput, refusal } = calls.get(part) ?? {};
    // Without arguments, it may be the start of another call of its tool.
    const isWhole = Object.keys(input).length > 0 || names.size === parts.length;
    return (invalidInput ?? refusal) === undefined && isWhole;
  });
};

type Several = readonly [ToolPart, ...ToolPart[]];

/** The parts whose id came more than once. */
const withOneId = (parts: readonly ToolPart[]): readonly Several[] => {
  if (!parts.some(({ isAgain }) => isAgain)) return [];
  const byId = new Map<string, [ToolPart, ...ToolPart[]]>();
  for (const part of parts) {
    const { id, response } = part.key;
    if (id === undefined) continue;
    const known = byId.get(`${response}/${id}`);
    if (known === undefined) byId.set(`${response}/${id}`, [part]);
    else known.push(part);
  }
  return [...byId.values()];
};

const isSameCall = (one: ToolCallBlock | undefined, other: ToolCallBlock | undefined): boolean =>
  one?.name === other?.name &&
  one?.invalidInput === other?.invalidInput &&
  one?.refusal === other?.refusal &&
  isSameJson(one?.input, other?.input);

/**
 * The names of calls with arguments that are no JSON, and `''` for arguments without a name. They are empty unless there is a call
 * without arguments, which these may belong to.
 */
const tornNames = (parts: readonly ToolPart[]): ReadonlySet<string> =>
  new Set(
    parts.some(hasNoArguments)
      ? parts.filter((part) => part.name === '' || isTorn(part)).map(({ name }) => name)
      : [],
  );

const hasNoArguments = ({ input, json }: ToolPart): boolean =>
  input === undefined && json.every((text) => text.trim() === '');

const isTorn = (part: ToolPart): boolean =>
  part.input === undefined && !hasNoArguments(part) && exactJson(part.json.join('')) === undefined;

/** `torn` are the `tornNames` of its message. */
const toToolCall = (part: ToolPart, torn: ReadonlySet<string>): ToolCallBlock => {
  const { id, name, input, json, suspends, vendorData } = part;
  const isApart = torn.size > 0 && hasNoArguments(part) && (torn.has('') || torn.has(name));
  const refusal = part.refusal ?? (isApart && name !== '' ? notTogether : undefined);
  const text = json.join('');
  const value = input ?? (noArguments.has(text.trim()) ? {} : exactJson(text));
  const isReadable =
    isRecord(value) &&
    !isTooDeep(value) &&
    !hasInexact(value) &&
    (input !== undefined || !mayRepeatKeys(text, value));
  return {
    type: 'tool_call',
    id,
    name,
    ...(isReadable
      ? { input: value }
      : { input: {}, invalidInput: input === undefined ? text : written(input) }),
    ...defined({ refusal, suspends, vendorData }),
  };
};

/** Whether a chunk continues a tool call: by id and index, otherwise as an unnamed chunk of the last one. */
const belongs = (
  { key, name, input, json }: ToolPart,
  chunk: ToolCallChunk,
  response: number,
): boolean => {
  const id = idOf(chunk);
  if (key.response !== response) return false;
  if (id !== undefined && key.id !== undefined && id !== key.id) return false;
  if (chunk.index !== undefined && key.index !== undefined && chunk.index !== key.index) {
    return false;
  }
  const given = nameOf(chunk);
  if (given !== undefined && name !== given && name !== '') return false;
  // A whole call is another one, unless it comes again.
  if (given !== undefined && input !== undefined) return repeats(key, input, chunk);
  const isIdentified = (id ?? chunk.index) !== undefined;
  return isIdentified || given === undefined || (name === '' && json.length === 0);
};

const repeats = (key: ToolPart['key'], input: unknown, chunk: ToolCallChunk): boolean =>
  key.id !== undefined &&
  key.id === chunk.id &&
  key.index !== undefined &&
  key.index === chunk.index &&
  chunk.input !== undefined &&
  written(input) === written(chunk.input);

const isNamedAt = (
  { key, name, input }: ToolPart,
  { index }: ToolCallChunk,
  response: number,
): boolean =>
  key.response === response &&
  index !== undefined &&
  key.index === index &&
  name !== '' &&
  input === undefined;

/** Whether a further name may be the rest of an earlier one, or name the same call again: it has the same id or index. */
const mayBeginName = (part: ToolPart, chunk: ToolCallChunk, response: number): boolean => {
  const { key } = part;
  if (part.isMixed === true) return isNamedAt(part, chunk, response);
  const id = idOf(chunk);
  const isOther = (one?: string | number, other?: string | number): boolean =>
    one !== undefined && other !== undefined && one !== other;
  return (
    key.response === response &&
    part.name !== '' &&
    ((id !== undefined && id === key.id) ||
      (chunk.index !== undefined && chunk.index === key.index)) &&
    !isOther(id, key.id) &&
    !isOther(chunk.index, key.index)
  );
};

/** Some vendors send an empty id and name with all but the first chunk. */
const idOf = ({ id }: ToolCallChunk): string | undefined => (id === '' ? undefined : id);
const nameOf = ({ name }: ToolCallChunk): string | undefined => (name === '' ? undefined : name);

/** Converts a value of a model to JSON; a value that is nested too deeply cannot be converted. */
export const written = (value: unknown): string => {
  try {
    return toExactJson(value);
  } catch {
    return 'a value that cannot be read';
  }
};

const createFreeId = (isTaken: (id: string) => boolean): ((wanted: string) => string) => {
  const used = new Set<string>();
  const copies = new Map<string, number>();
  return (wanted) => {
    let copy = copies.get(wanted) ?? 1;
    let id = copy === 1 ? wanted : `${wanted}_${copy}`;
    while (used.has(id) || isTaken(id)) {
      copy += 1;
      id = `${wanted}_${copy}`;
    }
    copies.set(wanted, copy);
    used.add(id);
    return id;
  };
};
