import type { BetaContentBlockParam as ContentBlockParam } from '@anthropic-ai/sdk/resources/beta/messages';
import type { VendorBlock, VendorData } from 'millrace';
import { isRecord } from 'millrace/values';
import { type JsonRecord, textAt } from '@millrace/wire';

/** The name of the vendor in messages, also of models that another host serves. */
export const vendor = 'Anthropic';

/** Types with an equivalent in Millrace messages, and the fields that it holds. */
const understood: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['text', ['text', 'citations']],
  ['thinking', ['thinking', 'signature']],
  ['redacted_thinking', ['data']],
  ['tool_use', ['id', 'name', 'input']],
  ['tool_result', []],
  ['image', []],
  ['document', []],
]);

/** A block that only Anthropic understands, such as the call of a built-in tool. */
export type OpaqueBlock = Exclude<
  ContentBlockParam,
  {
    readonly type:
      'text' | 'thinking' | 'redacted_thinking' | 'tool_use' | 'tool_result' | 'image' | 'document';
  }
>;

export const isOpaque = (block: unknown): block is OpaqueBlock =>
  isRecord(block) && typeof block['type'] === 'string' && !understood.has(block['type']);

/** Keeps a block as it is: Anthropic only continues an answer if all of its blocks are sent back. */
export const toVendorBlock = (data: JsonRecord): VendorBlock => ({
  type: 'vendor',
  vendor,
  kind: textAt(data, 'type'),
  data,
});

/** The block of a part of an answer of Anthropic; `undefined` for one of another vendor. */
export const opaqueBlock = ({ vendor: of, data }: VendorBlock): OpaqueBlock | undefined =>
  of === vendor && isOpaque(data) ? data : undefined;

/** The fields of an understood block that its equivalent does not hold, such as the `caller` of a tool call. */
export const furtherFields = (block: JsonRecord): JsonRecord => {
  const held = understood.get(block['type']) ?? [];
  const isFurther = (key: string): boolean =>
    key !== 'type' && !held.includes(key) && block[key] !== null && block[key] !== undefined;
  const further = Object.keys(block).filter(isFurther);
  return Object.fromEntries(further.map((key) => [key, block[key]]));
};

export const toVendorData = (data: JsonRecord): { readonly vendorData?: VendorData } =>
  Object.keys(data).length === 0 ? {} : { vendorData: { vendor, data } };

/** The fields to send back with a block; none for data of another vendor. */
export const fieldsBack = (data: VendorData | undefined): JsonRecord =>
  data?.vendor === vendor && isRecord(data.data) ? data.data : {};
