import { MillraceError, type ModelChunk } from 'millrace';
import { exactJson } from 'millrace/values';
import { type JsonRecord, textAt } from '@millrace/wire';
import { mergedMetadata, toVendorData } from './vendor-parts.js';

type Chunks = readonly ModelChunk[];

/** A tool call while its input streams. */
interface OpenInput {
  readonly index: number;
  readonly id: string;
  readonly isForeign: boolean;
  readonly deltas: string[];
  metadata: JsonRecord | undefined;
}

export interface ToolInputs {
  readonly start: (part: JsonRecord) => Chunks;
  readonly delta: (part: JsonRecord) => Chunks;
  /** A whole call: it decides, and what streamed before was a preview. */
  readonly call: (part: JsonRecord) => Chunks;
  /** The ids of calls that were announced, and did not arrive. */
  readonly missing: () => readonly string[];
}

/**
 * Reads the tool calls of one answer. Each gets an index of its own, so that two with the same id stay two. A call that the provider runs
 * itself is no chunk here.
 */
export const createToolInputs = (
  vendor: string,
  toolNameOf: (wireName: string) => string,
): ToolInputs => {
  const open = new Map<string, OpenInput>();
  let count = 0;
  const begin = (part: JsonRecord, id: string): OpenInput => ({
    index: count++,
    id,
    isForeign: part['providerExecuted'] === true,
    deltas: [],
    metadata: mergedMetadata(undefined, part['providerMetadata']),
  });
  return {
    start: (part) => {
      const id = textAt(part, 'id');
      const input = begin(part, id);
      open.set(id, input);
      return input.isForeign ? [] : [named(input, toolNameOf(textAt(part, 'toolName')))];
    },
    delta: (part) => {
      const input = open.get(textAt(part, 'id'));
      const json = textAt(part, 'delta');
      if (input === undefined) throw stray(vendor);
      input.metadata = mergedMetadata(input.metadata, part['providerMetadata']);
      input.deltas.push(json);
      const { index, id, isForeign } = input;
      return isForeign || json === '' ? [] : [{ type: 'toolCall', index, ...idOf(id), json }];
    },
    call: (part) => {
      const id = textAt(part, 'toolCallId');
      const known = open.get(id);
      open.delete(id);
      const input = known ?? begin(part, id);
      const metadata = mergedMetadata(input.metadata, part['providerMetadata']);
      return [
        ...(known === undefined || known.isForeign
          ? [named(input, toolNameOf(textAt(part, 'toolName')))]
          : []),
        {
          type: 'toolCall',
          index: input.index,
          ...idOf(id),
          ...decided(input.isForeign ? '' : input.deltas.join(''), part['input']),
          ...toVendorData(vendor, metadata),
        },
      ];
    },
    missing: () => [...open.values()].filter(({ isForeign }) => !isForeign).map(({ id }) => id),
  };
};

const idOf = (id: string): { readonly id?: string } => (id === '' ? {} : { id });

const named = ({ index, id }: OpenInput, name: string): ModelChunk => ({
  type: 'toolCall',
  index,
  ...idOf(id),
  name,
});

/** The input of a whole call, as far as the preview does not have it already. */
const decided = (
  preview: string,
  input: unknown,
): { readonly json?: string; readonly input?: unknown } => {
  if (typeof input !== 'string') return input === undefined || input === null ? {} : { input };
  if (input === preview) return {};
  if (preview === '') return { json: input };
  // It replaces the preview. What is no JSON stays a string, and is reported to the model.
  return { input: exactJson(input === '' ? '{}' : input) ?? input };
};

const stray = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} sent a part of a tool call that had not started.`,
    { retryable: true },
  );
