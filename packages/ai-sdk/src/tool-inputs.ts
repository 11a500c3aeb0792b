import { MillraceError, type ModelChunk } from 'millrace';
import { exactJson, isSameJson } from 'millrace/values';
import { type JsonRecord, textAt } from '@millrace/wire';
import { mergedMetadata, toVendorData } from './vendor-parts.js';

type Chunks = readonly ModelChunk[];

/** The tools of a request, by their names at the vendor. */
export interface RequestTools {
  readonly toolNameOf: (wireName: string) => string;
  /** Whether a tool of the request has this name, so that a call of it is expected to run here. */
  readonly hasTool: (name: string) => boolean;
}

/** The preview of a tool call: its input while it streams. */
interface Preview {
  readonly id: string;
  readonly wireName: string;
  /** The index of its chunks; absent if nothing is emitted before the whole call arrives. */
  readonly index: number | undefined;
  /** It announced a call that the provider runs. */
  readonly isForeign: boolean;
  readonly deltas: string[];
  metadata: JsonRecord | undefined;
}

/** Two whole calls with the same key are one. */
interface WholeCall {
  readonly id: unknown;
  readonly toolName: unknown;
  readonly input: unknown;
  readonly isForeign: boolean;
}

export interface ToolInputs {
  readonly start: (part: JsonRecord) => Chunks;
  readonly delta: (part: JsonRecord) => Chunks;
  /**
   * A whole call: its name, id, input and who runs it count, and not those of its preview. A call that the provider runs has no
   * chunks of its own, and refuses a local call with its id. Returns `undefined` if an identical call has arrived: it must not run twice.
   */
  readonly call: (part: JsonRecord) => Chunks | undefined;
  /** The ids of calls that were announced, and did not arrive. */
  readonly missing: () => readonly string[];
  /** The name of the tool whose input streams without chunks. */
  readonly unseen: () => string | undefined;
  /** Whether a chunk belongs to a preview that no whole call has confirmed. */
  readonly isWithdrawn: (chunk: ModelChunk) => boolean;
}

/**
 * Reads the tool calls of one answer. Each has an index of its own, so that different calls with one id are seen, and refused. Only previews
 * that name a tool of the request are emitted: providers also announce calls that they run themselves.
 */
export const createToolInputs = (
  vendor: string,
  { toolNameOf, hasTool }: RequestTools,
): ToolInputs => {
  const open = new Map<string, Preview>();
  const read: WholeCall[] = [];
  /** The indexes of previews that were emitted, and that no whole call has confirmed. */
  const unconfirmed = new Set<number>();
  let count = 0;
  /** The index of the last local call with an id. */
  const local = new Map<string, number>();
  const announced = ({ index, id, wireName }: Preview): Chunks =>
    index === undefined ? [] : [named(index, id, toolNameOf(wireName))];
  const isRepeated = (part: JsonRecord): boolean => {
    const { toolCallId: id, toolName, providerExecuted } = part;
    const call = { id, toolName, input: inputOf(part), isForeign: providerExecuted === true };
    const isKnown = id !== undefined && id !== '' && read.some((it) => isSameJson(it, call));
    if (!isKnown) read.push(call);
    return isKnown;
  };
  /** The preview that a whole call continues, if both are about the same local call. */
  const confirmed = (preview: Preview | undefined, part: JsonRecord): Preview | undefined => {
    if (preview?.index === undefined || preview.wireName !== textAt(part, 'toolName')) {
      return undefined;
    }
    unconfirmed.delete(preview.index);
    return preview;
  };
  return {
    start: (part) => {
      const [id, wireName] = [textAt(part, 'id'), textAt(part, 'toolName')];
      const isForeign = part['providerExecuted'] === true;
      const isShown = !isForeign && hasTool(toolNameOf(wireName));
      const metadata = mergedMetadata(undefined, part['providerMetadata']);
      const index = isShown ? count++ : undefined;
      const preview: Preview = { id, wireName, index, isForeign, deltas: [], metadata };
      // Another preview with this id is superseded: no call can confirm it.
      open.set(id, preview);
      if (index !== undefined) unconfirmed.add(index);
      return announced(preview);
    },
    delta: (part) => {
      const preview = open.get(textAt(part, 'id'));
      const json = textAt(part, 'delta');
      if (preview === undefined) throw stray(vendor);
      preview.metadata = mergedMetadata(preview.metadata, part['providerMetadata']);
      preview.deltas.push(json);
      const { index, id } = preview;
      return index === undefined || json === ''
        ? []
        : [{ type: 'toolCall', index, ...idOf(id), json }];
    },
    call: (part) => {
      const id = textAt(part, 'toolCallId');
      const preview = open.get(id);
      open.delete(id);
      if (isRepeated(part)) return undefined;
      const isForeign = part['providerExecuted'] === true;
      const isOther = id !== '' && read.some((it) => it.id === id && it.isForeign !== isForeign);
      const refused = isOther ? { refusal: ranAlready } : {};
      if (isForeign) {
        const index = local.get(id);
        return index === undefined ? [] : [{ type: 'toolCall', index, id, ...refused }];
      }
      const shown = confirmed(preview, part);
      const index = shown?.index ?? count++;
      local.set(id, index);
      const metadata = mergedMetadata(preview?.metadata, part['providerMetadata']);
      return [
        ...(shown === undefined ? [named(index, id, toolNameOf(textAt(part, 'toolName')))] : []),
        {
          type: 'toolCall',
          index,
          ...idOf(id),
          ...decided(shown?.deltas.join('') ?? '', part['input']),
          ...toVendorData(vendor, metadata),
          ...refused,
        },
      ];
    },
    missing: () => [...open.values()].filter(({ isForeign }) => !isForeign).map(({ id }) => id),
    unseen: () => [...open.values()].findLast(({ index }) => index === undefined)?.wireName,
    isWithdrawn: (chunk) =>
      chunk.type === 'toolCall' && chunk.index !== undefined && unconfirmed.has(chunk.index),
  };
};

const ranAlready =
  'Not run: your message has a tool call with the same id that the provider has run itself.';

/** The value of an input: its JSON may be written in several ways. */
const inputOf = ({ input }: JsonRecord): unknown =>
  typeof input === 'string' ? (exactJson(input === '' ? '{}' : input) ?? input) : input;

const idOf = (id: string): { readonly id?: string } => (id === '' ? {} : { id });

const named = (index: number, id: string, name: string): ModelChunk => ({
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
  if (input === undefined || input === null) return preview === '' ? {} : { input: {} };
  if (typeof input !== 'string') return { input };
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
