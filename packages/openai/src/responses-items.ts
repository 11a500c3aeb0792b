import type { ModelChunk, TextPhase, VendorBlock } from 'millrace';
import { isRecord, parsedJson, toExactJson } from 'millrace/values';
import { at, encodeSignature, type JsonRecord, listAt, textAt } from '@millrace/wire';
import { citationOf } from './citations.js';
import { defaultInput } from './custom-tools.js';
import { fieldsOf, textIn } from './fields.js';
import type { ReaderSource } from './wire-model.js';

/**
 * How much a value counts. What streams is a preview: the event that completes a value overrides it, the completed item
 * overrides that event, and the completed response overrides all.
 */
export const rank = { streamed: 0, value: 1, item: 2, response: 3 } as const;
export type Rank = (typeof rank)[keyof typeof rank];

/** One value of an item that may be streamed: text, a part of the reasoning, or the arguments of a call. */
export interface Part {
  readonly deltas: string[];
  settled: string;
  rank: Rank;
  isRefusal: boolean;
  /** The annotations up to the first one that is missing, and those after it by their index. */
  annotations: unknown[];
  readonly laterAnnotations: Map<number, unknown>;
  annotationsRank: Rank;
  /** A part that is not understood, as the vendor sent it. */
  unknown?: JsonRecord;
}

/** One item of the output of a response, as far as it is known. */
export interface OutputItem {
  readonly type: string;
  readonly index: unknown;
  /** The index of its tool call among the blocks of the answer: unique, unlike that of some servers. */
  readonly callIndex: number;
  readonly parts: Map<string, Part>;
  fields: JsonRecord;
  rank: Rank;
  /** The status of the complete item, if the server sends it. */
  status: unknown;
}

/** A block of the answer, as chunks: those that open it, its text, and those that end it. */
export interface Unit {
  /** Unique within its item. */
  readonly key: string;
  readonly kind: 'text' | 'thinking' | 'call' | 'block';
  /** The fields that must not differ between the stream and the end, apart from the text. */
  readonly identity: string;
  readonly start: readonly ModelChunk[];
  readonly text: string;
  readonly ends: readonly ModelChunk[];
}

export const createItem = (type: string, index: unknown, callIndex: number): OutputItem => ({
  type,
  index,
  callIndex,
  parts: new Map(),
  fields: {},
  rank: rank.streamed,
  status: undefined,
});

export const partOf = ({ parts }: OutputItem, key: string): Part => {
  const known = parts.get(key);
  if (known !== undefined) return known;
  const part: Part = {
    deltas: [],
    settled: '',
    rank: rank.streamed,
    isRefusal: false,
    annotations: [],
    laterAnnotations: new Map(),
    annotationsRank: rank.streamed,
  };
  parts.set(key, part);
  return part;
};

/** Sets a complete value. An empty one is no value: some servers fill in only one of the places for it. */
export const settle = (part: Part, given: unknown, by: Rank): void => {
  const value = valueIn(given);
  if (value === '' || by < part.rank) return;
  part.settled = value;
  part.rank = by;
};

/** A string, or arguments that a server sends as an object. */
export const valueIn = (given: unknown): string =>
  isRecord(given) ? toExactJson(given) : textIn(given);

const valueOf = (part: Part): string => {
  if (part.rank > rank.streamed || part.deltas.length === 0) return part.settled;
  if (part.deltas.length > 1) part.deltas.splice(0, part.deltas.length, part.deltas.join(''));
  return part.deltas[0] ?? '';
};

/** Adds what an event or the response says about an item. */
export const absorb = (item: OutputItem, given: unknown, by: Rank): void => {
  const entries = Object.entries(fieldsOf(given)).filter(([, value]) => value !== null);
  const fields = Object.fromEntries(entries);
  item.fields = by < item.rank ? { ...fields, ...item.fields } : { ...item.fields, ...fields };
  if (by > item.rank) item.rank = by;
  if (by >= rank.item) item.status = fields['status'] ?? item.status;
  switch (item.type) {
    case 'message':
      partsIn(given).forEach((part, index) => absorbPart(item, String(index), part, by));
      break;
    case 'reasoning':
      for (const [field, letter] of [
        ['summary', 's'],
        ['content', 'c'],
      ] as const) {
        listAt(given, field).forEach((part, index) =>
          settle(partOf(item, `${letter}${index}`), at(part, 'text'), by),
        );
      }
      break;
    case 'function_call':
      settle(partOf(item, callPart), at(given, 'arguments'), by);
      break;
    case 'custom_tool_call':
      settle(partOf(item, callPart), at(given, 'input'), by);
      break;
  }
};

export const callPart = 'input';

/** The parts of a message. Some servers send its text alone. */
const partsIn = (message: unknown): readonly unknown[] => {
  const text = textAt(message, 'content');
  return text === '' ? listAt(message, 'content') : [{ type: 'output_text', text }];
};

/** Adds a complete part of a message: text, or something that is not understood. */
export const absorbPart = (item: OutputItem, key: string, given: unknown, by: Rank): void => {
  if (!isFilled(given)) return;
  const refusal = textAt(given, 'refusal');
  const text = textAt(given, 'text') || refusal;
  const part = partOf(item, key);
  if (text !== '') absorbText(part, { text, isRefusal: refusal !== '', given }, by);
  else part.unknown = fieldsOf(given);
};

/** Whether a part of a message has content. */
export const isFilled = (part: unknown): boolean =>
  textAt(part, 'text') + textAt(part, 'refusal') !== '' ||
  (isRecord(part) && !textParts.has(textAt(part, 'type')));

/** The types of text, also without a type: events have that of the event. */
const textParts: ReadonlySet<string> = new Set(['output_text', 'text', 'refusal', '']);

const absorbText = (
  part: Part,
  { text, isRefusal, given }: { text: string; isRefusal: boolean; given: unknown },
  by: Rank,
): void => {
  if (by >= part.rank) part.isRefusal = isRefusal;
  settle(part, text, by);
  const annotations = listAt(given, 'annotations');
  if (annotations.length > 0 && by >= part.annotationsRank) {
    part.annotations = [...annotations];
    part.annotationsRank = by;
  }
};

/** Adds an annotation at its index, or after the others. Returns whether it is new. */
export const addAnnotation = (part: Part, annotation: unknown, index: unknown): boolean => {
  const { annotations, laterAnnotations: later } = part;
  const place = typeof index === 'number' ? index : annotations.length;
  if (part.annotationsRank > rank.streamed || place < annotations.length) return false;
  if (later.has(place)) return false;
  later.set(place, annotation);
  for (let next = annotations.length; later.has(next); next += 1) {
    annotations.push(later.get(next));
    later.delete(next);
  }
  return true;
};

/** The annotations to show. Those after a gap wait until the end: the missing one may still come. */
const annotationsOf = (part: Part, isFinal: boolean): readonly unknown[] => {
  const { annotations, laterAnnotations: later, annotationsRank } = part;
  if (!isFinal || later.size === 0 || annotationsRank > rank.streamed) return annotations;
  const ordered = [...later].sort(([one], [other]) => one - other);
  return [...annotations, ...ordered.map(([, annotation]) => annotation)];
};

/** Whether the vendor did not complete an item. Items that it runs itself have the status of that run. */
export const isCut = ({ type, status }: OutputItem): boolean =>
  status === 'incomplete' || (status === 'in_progress' && ofModel.has(type));

const ofModel: ReadonlySet<string> = new Set(['message', 'function_call', 'custom_tool_call']);

/** Whether an item contains a refusal. */
export const isRefused = ({ parts }: OutputItem): boolean =>
  [...parts.values()].some((part) => part.isRefusal && valueOf(part) !== '');

/** The place of an item among the others. */
export interface Place {
  /** Text precedes it. */
  readonly followsText: boolean;
  /** The vendor ran the call itself: its output is another item. */
  readonly isRun: boolean;
  /** The response has ended. */
  readonly isFinal: boolean;
}

/** The blocks that an item stands for. */
export const unitsOf = (item: OutputItem, source: ReaderSource, place: Place): readonly Unit[] => {
  switch (item.type) {
    case 'message':
      return textUnits(item, source, place);
    case 'reasoning':
      return [thinkingUnit(item, source)];
    case 'function_call':
    case 'custom_tool_call':
      return [callUnit(item, source, place.isFinal)];
    default:
      return [
        place.isRun
          ? blockUnit(item, source)
          : (actionUnit(item, source) ?? blockUnit(item, source)),
      ];
  }
};

const textUnits = (
  item: OutputItem,
  { vendor }: ReaderSource,
  { followsText, isFinal }: Place,
): readonly Unit[] => {
  const keys = [...item.parts.keys()].sort((one, other) => Number(one) - Number(other));
  let isFirst = true;
  return keys.flatMap((key): readonly Unit[] => {
    const part = partOf(item, key);
    if (part.unknown !== undefined) return [partUnit(key, part.unknown, vendor)];
    const text = valueOf(part);
    const annotations = annotationsOf(part, isFinal);
    if (text === '' && annotations.length === 0) return [];
    const start = textStart(item, isFirst && followsText, !isFirst);
    isFirst = false;
    const ends = annotations.flatMap((it) => citationOf(it, vendor));
    return [{ key, kind: 'text', identity: JSON.stringify(start), start, text, ends }];
  });
};

/** Opens a block of text if the default would not do. */
export const textStart = (
  { fields }: OutputItem,
  separate: boolean,
  isNext: boolean,
): readonly ModelChunk[] => {
  const phase = phaseOf(fields['phase']);
  return separate || isNext || phase !== undefined
    ? [
        {
          type: 'textStart',
          ...(separate ? { separate } : {}),
          ...(phase === undefined ? {} : { phase }),
        },
      ]
    : [];
};

const phaseOf = (value: unknown): TextPhase | undefined =>
  value === 'commentary' || value === 'final_answer' ? value : undefined;

/** The text of the reasoning: the parts of the summary, then those of the content. */
const thinkingUnit = (item: OutputItem, { vendor }: ReaderSource): Unit => {
  const keys = [...item.parts.keys()].sort(byPlace);
  const text = keys
    .map((key) => valueOf(partOf(item, key)))
    .filter((it) => it !== '')
    .join('\n\n');
  const signature = encodeSignature(vendor, 'item', item.fields);
  const isComplete = item.rank >= rank.item;
  const redacted = text === '' ? { redacted: true } : {};
  const ends: readonly ModelChunk[] = isComplete
    ? [{ type: 'thinking', text: '', signature, ...redacted }]
    : [];
  return { key: 'thinking', kind: 'thinking', identity: '', start: [], text, ends };
};

const byPlace = (one: string, other: string): number =>
  one.startsWith('s') === other.startsWith('s')
    ? Number(one.slice(1)) - Number(other.slice(1))
    : other.localeCompare(one);

const callUnit = (item: OutputItem, source: ReaderSource, isFinal: boolean): Unit => ({
  key: callPart,
  kind: 'call',
  identity: callIdentity(item),
  start: isAnnounced(item) ? [callStart(item, source)] : nameless(item, isFinal),
  text:
    item.type === 'custom_tool_call'
      ? customText(item, source, isFinal)
      : valueOf(partOf(item, callPart)),
  ends: namespaceOf(item, source),
});

/** Arguments whose name never came may be those of another call, which does not run beside them. */
const nameless = (item: OutputItem, isFinal: boolean): readonly ModelChunk[] =>
  isFinal && valueOf(partOf(item, callPart)) !== ''
    ? [{ type: 'toolCall', index: item.callIndex }]
    : [];

/** A tool that the vendor's search has loaded is in a namespace, which the next request must repeat. */
const namespaceOf = (
  { type, fields, callIndex: index }: OutputItem,
  { vendor }: ReaderSource,
): readonly ModelChunk[] => {
  const namespace = textIn(fields['namespace']);
  if (type !== 'function_call' || namespace === '') return [];
  return [{ type: 'toolCall', index, vendorData: { vendor, data: { type, namespace } } }];
};

/** The arguments that the text of a custom tool becomes, not closed while more text may follow. */
const customText = (item: OutputItem, source: ReaderSource, isFinal: boolean): string => {
  const part = partOf(item, callPart);
  const text = valueOf(part);
  const isComplete = isFinal || part.rank > rank.streamed;
  if (text === '' && !isComplete) return '';
  return `${customStart(item, source)}${escaped(text)}${isComplete ? '"}' : ''}`;
};

export const callIdentity = ({ fields }: OutputItem): string =>
  JSON.stringify([callIdOf(fields), fields['name']]);

const callIdOf = (fields: JsonRecord): string => textIn(fields['call_id']) || textIn(fields['id']);

/** Whether the name of a call is known. Until then, its arguments are held back. */
export const isAnnounced = ({ fields }: OutputItem): boolean => textIn(fields['name']) !== '';

export const callStart = (item: OutputItem, { vendor, toolName }: ReaderSource): ModelChunk => ({
  type: 'toolCall',
  index: item.callIndex,
  id: callIdOf(item.fields),
  name: toolName(textIn(item.fields['name'])),
  ...(item.type === 'custom_tool_call'
    ? {
        suspends: { request: { type: item.type } },
        vendorData: { vendor, data: { type: item.type } },
      }
    : {}),
});

/** The text input of a custom tool becomes the only argument of its call. */
export const customStart = (item: OutputItem, { textInput }: ReaderSource): string =>
  `{${JSON.stringify(textInput?.(textIn(item.fields['name'])) ?? defaultInput)}:"`;

/** Escapes text for JSON, with each half of a surrogate pair on its own: a delta may end between them. */
export const escaped = (text: string): string =>
  JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[\uD800-\uDFFF]/g, (half) => `\\u${half.charCodeAt(0).toString(16)}`);

/** An item that is not understood. */
const blockUnit = ({ type, fields }: OutputItem, { vendor }: ReaderSource): Unit =>
  vendorUnit('block', { type: 'vendor', vendor, kind: type, data: fields });

/** A part of a message that is not understood. It is sent back as the only part of a message. */
const partUnit = (key: string, part: JsonRecord, vendor: string): Unit => {
  const data = { type: 'message', role: 'assistant', content: [part] };
  return vendorUnit(key, { type: 'vendor', vendor, kind: textAt(part, 'type'), data });
};

const vendorUnit = (key: string, block: VendorBlock): Unit => ({
  key,
  kind: 'block',
  identity: '',
  start: [{ type: 'block', block }],
  text: '',
  ends: [],
});

/** Items that wait for a person or the program: an approval, or something to do outside the vendor. */
const actions: Readonly<Record<string, (fields: JsonRecord) => JsonRecord>> = {
  mcp_approval_request: ({ arguments: written }) => inputOf(parsedJson(textIn(written))),
  shell_call: ({ action }) => inputOf(action),
  local_shell_call: ({ action }) => inputOf(action),
  apply_patch_call: ({ operation }) => inputOf(operation),
  computer_call: ({ action, actions: list, pending_safety_checks: checks }) => ({
    ...(list === undefined ? inputOf(action) : { actions: list }),
    ...(Array.isArray(checks) && checks.length > 0 ? { pending_safety_checks: checks } : {}),
  }),
};

const inputOf = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

const actionUnit = (
  item: OutputItem,
  { vendor, mcpApprovals: from = 'client' }: ReaderSource,
): Unit | undefined => {
  const { type, fields, callIndex } = item;
  // An item that the vendor did not complete must not start anything.
  const isComplete = item.rank >= rank.item;
  if (!isComplete || !Object.hasOwn(actions, type) || isInContainer(fields)) return undefined;
  const isApproval = type === 'mcp_approval_request';
  const input = actions[type]?.(fields) ?? {};
  const name = isApproval ? textIn(fields['name']) : type.replace(/_call$/u, '');
  const server = textIn(fields['server_label']);
  const start: Extract<ModelChunk, { readonly type: 'toolCall' }> = {
    type: 'toolCall',
    index: callIndex,
    id: callIdOf(fields),
    name: isApproval ? `approve_${name}` : name,
    suspends: isApproval ? { request: { tool: name, server, input }, from } : { request: { type } },
    vendorData: { vendor, data: fields },
  };
  return {
    key: 'action',
    kind: 'call',
    identity: JSON.stringify([start.id, start.name]),
    start: [start],
    text: JSON.stringify(input),
    ends: [],
  };
};

/** The vendor runs such calls itself. */
const isInContainer = (fields: JsonRecord): boolean =>
  textAt(fields['environment'], 'type').startsWith('container');
