import { exactJson, hasInexact, toExactJson } from '../values/exact-json.js';
import { defined, isRecord, isTooDeep, mayRepeatKeys } from '../values/json.js';
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

/** Collects chunks of tool calls, after the known ones. Missing and repeated ids are replaced by unique ones. */
export const createToolParts = (
  iteration: number,
  isTaken: (toolCallId: string) => boolean,
  known: readonly ToolPart[] = [],
): ToolParts => {
  const parts: ToolPart[] = [...known];
  const freeId = createFreeId((id) => isTaken(id) || known.some((part) => part.id === id));

  const begin = (chunk: ToolCallChunk, response: number): ToolPart => {
    const { index, name = '' } = chunk;
    const given = idOf(chunk);
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
    };
    parts.push(part);
    return part;
  };
  return {
    add: (chunk, response) => {
      const begun = parts.findLast((part) => belongs(part, chunk, response));
      const part = begun ?? begin(chunk, response);
      if (part.name === '') part.name = chunk.name ?? '';
      if (chunk.json !== undefined) part.json.push(chunk.json);
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

export const toToolCall = (part: ToolPart): ToolCallBlock => {
  const { id, name, input, json, refusal, suspends, vendorData } = part;
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
  if (chunk.name !== undefined && name !== chunk.name && name !== '') return false;
  // A whole call is another one, unless it comes again.
  if (chunk.name !== undefined && input !== undefined) return repeats(key, input, chunk);
  const isIdentified = (id ?? chunk.index) !== undefined;
  return isIdentified || chunk.name === undefined || (name === '' && json.length === 0);
};

const repeats = (key: ToolPart['key'], input: unknown, chunk: ToolCallChunk): boolean =>
  key.id !== undefined &&
  key.id === chunk.id &&
  key.index !== undefined &&
  key.index === chunk.index &&
  chunk.input !== undefined &&
  written(input) === written(chunk.input);

/** Some vendors send an empty id with all but the first chunk. */
const idOf = ({ id }: ToolCallChunk): string | undefined => (id === '' ? undefined : id);

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
