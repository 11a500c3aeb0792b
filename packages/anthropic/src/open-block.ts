import type { ModelChunk } from 'millrace';
import { exactJson, isRecord } from 'millrace/values';
import {
  at,
  blockIndex,
  type JsonRecord,
  listAt,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { toCitation } from './citations.js';
import { furtherFields, isOpaque, toVendorBlock, toVendorData } from './vendor-block.js';

type Chunks = readonly ModelChunk[];

/** A block of an answer while it is read. */
export interface OpenBlock {
  readonly index: unknown;
  /** Its start, or what its first delta implies. */
  block: JsonRecord;
  /** Opened by a delta: its start is missing, or follows. */
  isImplied: boolean;
  isClosed: boolean;
  /** Fields that deltas added, other than the text, thinking and arguments that chunks carry. */
  added: JsonRecord;
  signature: string;
  /** Arguments that came with the start. Streamed ones replace them. */
  input: unknown;
  readonly json: string[];
}

export const openBlock = (index: unknown, block: JsonRecord, isImplied = false): OpenBlock => ({
  index,
  block,
  isImplied,
  isClosed: false,
  added: {},
  signature: textAt(block, 'signature'),
  input: isEmpty(block['input']) ? undefined : block['input'],
  json: [],
});

/** An empty object means that the arguments follow. */
const isEmpty = (input: unknown): boolean =>
  input === null || (isRecord(input) && Object.keys(input).length === 0);

/** The chunks for the start of a block. */
export const startChunks = (
  { index, block }: OpenBlock,
  toolNameOf: (wireName: string) => string,
): Chunks => {
  switch (block['type']) {
    case 'text':
      return [
        ...textChunks('text', textAt(block, 'text')),
        ...listAt(block, 'citations').flatMap(citationChunks),
      ];
    case 'thinking':
      return textChunks('thinking', textAt(block, 'thinking'));
    case 'redacted_thinking':
      return signed(textAt(block, 'data'), block, true);
    case 'tool_use': {
      const { id, name } = block;
      return [
        {
          type: 'toolCall',
          ...blockIndex(index),
          ...(typeof id === 'string' ? { id } : {}),
          ...(typeof name === 'string' ? { name: toolNameOf(name) } : {}),
          ...toVendorData(furtherFields(block)),
        },
      ];
    }
    default:
      return [];
  }
};

/** The chunks for the end of a block: what only counts once it is complete. */
export const endChunks = ({ index, block, added, signature, input, json }: OpenBlock): Chunks => {
  const data = toVendorData({ ...furtherFields(block), ...added });
  switch (block['type']) {
    case 'text':
      return data.vendorData === undefined ? [] : [{ type: 'text', text: '', ...data }];
    case 'thinking':
      return signed(signature, { ...block, ...added }, false);
    case 'redacted_thinking':
      return [];
    case 'tool_use': {
      const late = Object.keys(added).length === 0 ? {} : data;
      const whole = json.length > 0 ? {} : argumentsOf(input);
      const chunk = { type: 'toolCall' as const, ...blockIndex(index), ...whole, ...late };
      return Object.keys({ ...whole, ...late }).length === 0 ? [] : [chunk];
    }
    default:
      return isOpaque(block)
        ? [
            {
              type: 'block',
              block: toVendorBlock(withInput({ ...block, ...added }, json.join(''))),
            },
          ]
        : [];
  }
};

/** Arguments are streamed as strings; some compatible servers send them as an object. */
export const argumentsOf = (
  value: unknown,
): { readonly json?: string; readonly input?: unknown } => {
  if (typeof value === 'string') return { json: value };
  return value === undefined || value === null ? {} : { input: value };
};

export const citationChunks = (citation: unknown): Chunks =>
  isRecord(citation) && typeof citation['type'] === 'string'
    ? [{ type: 'citation', citation: toCitation(citation) }]
    : [];

/** Adds the fields of a delta: strings grow, and anything else is replaced. */
export const merged = (fields: JsonRecord, start: JsonRecord, delta: JsonRecord): JsonRecord => {
  const { type: _, ...given } = delta;
  const added = Object.entries(given).flatMap(([key, value]) => {
    const before = at(fields, key) ?? at(start, key);
    if (value === null) return [];
    return [
      [key, typeof before === 'string' && typeof value === 'string' ? before + value : value],
    ] as const;
  });
  return { ...fields, ...Object.fromEntries(added) };
};

const signed = (signature: string, block: JsonRecord, redacted: boolean): Chunks => {
  const data = toVendorData(furtherFields(block));
  if (data.vendorData === undefined) return signatureChunks(signature, { redacted });
  const chunk = { type: 'thinking', text: '', ...data } as const;
  return [
    {
      ...chunk,
      ...(signature === '' ? {} : { signature }),
      ...(redacted ? { redacted } : {}),
    },
  ];
};

const withInput = (block: JsonRecord, json: string): JsonRecord => {
  const input = exactJson(json);
  return input === undefined ? block : { ...block, input };
};
