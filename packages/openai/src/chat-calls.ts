import type { ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import { encodeSignature, type JsonRecord, signatureChunks } from '@millrace/wire';
import { defaultInput } from './custom-tools.js';
import { fieldsOf, indexIn, textIn } from './fields.js';
import type { ReaderSource } from './wire-model.js';

export interface CallSource extends Pick<ReaderSource, 'vendor' | 'toolName' | 'textInput'> {
  /** See `Profile.sendsWholeCalls`. */
  readonly sendsWholeCalls?: boolean | undefined;
}

/** Mutable, because spreads would dominate the cost of reading a chunk. */
type MutableToolCallChunk = { -readonly [Field in keyof ToolCallChunk]: ToolCallChunk[Field] };

type ToolCallChunk = Extract<ModelChunk, { readonly type: 'toolCall' }>;

/** The calls of custom tools in one answer: their text becomes an argument when the answer ends. */
interface CustomCall {
  readonly index: number | undefined;
  readonly id: string;
  readonly argument: string;
  readonly texts: string[];
}

/** The pieces of a call that only the vendor understands. */
interface ForeignCall {
  readonly kind: string;
  readonly index: unknown;
  data: JsonRecord;
}

export interface ChatCalls {
  /** Reads a chunk of a tool call, preceded by its signature if the vendor sends one. */
  readonly read: (call: JsonRecord) => readonly ModelChunk[];
  /**
   * Reads a chunk of the one call that there was before tool calls. It is held back until the answer ends: servers send it beside the
   * same call in the new form, and only that counts then.
   */
  readonly readFunction: (called: JsonRecord) => readonly ModelChunk[];
  /** The name of the call that is held back. */
  readonly held: () => string | undefined;
  /** Returns what was held back: the arguments of the custom calls so far, and the function call. */
  readonly finish: () => readonly ModelChunk[];
}

export const createChatCalls = (source: CallSource): ChatCalls => {
  const customs = createCustomCalls(source);
  const foreign = createForeignCalls(source.vendor);
  /** After a finish reason, what follows counts immediately: there need not be another one. */
  let isFinished = false;
  let isNew = false;
  const functionCall: ModelChunk[] = [];
  let heldName: string | undefined;
  const release = (): readonly ModelChunk[] => {
    heldName = undefined;
    return functionCall.splice(0);
  };
  return {
    readFunction: (called) => {
      if (isNew) return [];
      const chunk = { ...callOf(called, source), index: 0 };
      heldName ??= chunk.name;
      functionCall.push(chunk);
      return isFinished ? release() : [];
    },
    held: () => heldName,
    read: (call) => {
      isNew = true;
      release();
      const { function: called, custom, extra_content: extra } = call;
      if (isRecord(custom)) return customs.read(call, custom, isFinished);
      if (called === undefined && foreign.read(call)) return isFinished ? foreign.finish() : [];
      const chunk = callOf(called, source);
      const index = indexIn(call['index']);
      const id = idIn(call['id']);
      if (index !== undefined && source.sendsWholeCalls !== true) chunk.index = index;
      if (id !== '') chunk.id = id;
      return isRecord(extra)
        ? [...signatureChunks(encodeSignature(source.vendor, 'extra_content', extra)), chunk]
        : [chunk];
    },
    finish: () => {
      isFinished = true;
      return [...customs.finish(), ...foreign.finish(), ...release()];
    },
  };
};

const createCustomCalls = ({ vendor, toolName, textInput }: CallSource) => {
  const customs: CustomCall[] = [];
  const begin = (index: number | undefined, id: string, custom: JsonRecord): ToolCallChunk => {
    const name = textIn(custom['name']);
    const begun: CustomCall = {
      index,
      id: id || `custom_${customs.length}`,
      argument: textInput?.(name) ?? defaultInput,
      texts: [textIn(custom['input'])],
    };
    customs.push(begun);
    return {
      type: 'toolCall',
      ...(index !== undefined && { index }),
      id: begun.id,
      name: toolName(name),
      json: '',
      suspends: { request: { type: 'custom_tool_call' } },
      vendorData: { vendor, data: { type: 'custom' } },
    };
  };
  return {
    read: (call: JsonRecord, custom: JsonRecord, isFinished: boolean): readonly ModelChunk[] => {
      const index = indexIn(call['index']);
      const id = idIn(call['id']);
      const known = customs.findLast(
        (it) => (index === undefined || it.index === index) && (id || it.id) === it.id,
      );
      if (known === undefined) return [begin(index, id, custom)];
      known.texts.push(textIn(custom['input']));
      if (isFinished) return [whole(known)];
      return [{ type: 'toolCall', ...(index !== undefined && { index }), id: known.id, json: '' }];
    },
    finish: (): readonly ModelChunk[] => customs.map(whole),
  };
};

/** Calls of kinds that only the vendor understands. */
const createForeignCalls = (vendor: string) => {
  const foreign: ForeignCall[] = [];
  return {
    /** Returns whether it is such a call, or a piece of one. */
    read: (call: JsonRecord): boolean => {
      const { type, index, id: _, ...more } = call;
      const known = foreign.find((it) => index !== undefined && it.index === index);
      if (known !== undefined) known.data = grown(known.data, more);
      else if (isForeign(type)) foreign.push({ kind: type, index, data: call });
      else return false;
      return true;
    },
    finish: (): readonly ModelChunk[] =>
      foreign.splice(0).map(({ kind, data }) => ({
        type: 'block',
        block: { type: 'vendor', vendor, kind, data },
      })),
  };
};

/** A custom call with its text, which replaces an earlier one. */
const whole = ({ index, id, argument, texts }: CustomCall): ModelChunk => ({
  type: 'toolCall',
  ...(index === undefined ? {} : { index }),
  id,
  input: { [argument]: texts.join('') },
});

/** A call of a kind that only the vendor understands. */
const isForeign = (type: unknown): type is string =>
  typeof type === 'string' && type !== '' && type !== 'function' && type !== 'custom';

/** Adds a piece: strings and the fields of objects grow, and anything else is replaced. */
const grown = (known: JsonRecord, piece: JsonRecord): JsonRecord => ({
  ...known,
  ...Object.fromEntries(
    Object.entries(piece).map(([key, value]) => [key, grownField(known[key], value)]),
  ),
});

const grownField = (known: unknown, piece: unknown): unknown => {
  if (typeof known === 'string' && typeof piece === 'string') return known + piece;
  if (isRecord(known) && isRecord(piece)) return grown(known, piece);
  return piece ?? known;
};

/** Some servers send numbers as ids. */
const idIn = (id: unknown): string => (typeof id === 'number' ? String(id) : textIn(id));

/** Reads the name and arguments of a call. Some servers send the arguments as an object. */
const callOf = (called: unknown, { toolName }: CallSource): MutableToolCallChunk => {
  const { name, arguments: written } = fieldsOf(called);
  const chunk: MutableToolCallChunk = { type: 'toolCall' };
  if (textIn(name) !== '') chunk.name = toolName(textIn(name));
  if (typeof written === 'string') chunk.json = written;
  else if (written === undefined || written === null) chunk.json = '';
  else chunk.input = written;
  return chunk;
};
