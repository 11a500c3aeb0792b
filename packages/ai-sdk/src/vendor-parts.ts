import type { VendorBlock, VendorData } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { at, type JsonRecord, textAt } from '@millrace/wire';

/** The kinds of parts that only their provider understands. They go back to it in the same place. */
export type VendorPartKind =
  'tool-call' | 'tool-result' | 'custom' | 'reasoning-file' | 'file-metadata';

/** Metadata of a part, which its provider wants back. */
export const toVendorData = (
  vendor: string,
  metadata: JsonRecord | undefined,
): { readonly vendorData?: VendorData } =>
  metadata === undefined || Object.keys(metadata).length === 0
    ? {}
    : { vendorData: { vendor, data: metadata } };

/** The metadata of a block of this provider, as options of a part. */
export const optionsBack = (
  vendor: string,
  vendorData: VendorData | undefined,
): { readonly providerOptions?: JsonRecord } =>
  vendorData?.vendor === vendor && isRecord(vendorData.data)
    ? { providerOptions: vendorData.data }
    : {};

/** Merges the metadata of the parts of one block, by provider: a later field replaces an earlier one. */
export const mergedMetadata = (
  known: JsonRecord | undefined,
  next: unknown,
): JsonRecord | undefined => {
  if (!isRecord(next)) return known;
  const merged = Object.entries(next).map(([provider, fields]) => {
    const before = at(known, provider);
    return [
      provider,
      isRecord(before) && isRecord(fields) ? { ...before, ...fields } : fields,
    ] as const;
  });
  return { ...known, ...Object.fromEntries(merged) };
};

/** A part of an assistant message for a block of this provider; none for one of another. */
export const vendorPartBack = (vendor: string, block: VendorBlock): JsonRecord | undefined => {
  const { kind, data } = block;
  if (block.vendor !== vendor || !isRecord(data)) return undefined;
  const metadata = data['providerMetadata'];
  const providerOptions = isRecord(metadata) ? metadata : undefined;
  const { toolCallId, toolName } = data;
  switch (kind) {
    case 'tool-call':
      return defined({
        ...{ type: kind, toolCallId, toolName, input: data['input'] },
        ...{ providerExecuted: true, providerOptions },
      });
    case 'tool-result':
      return defined({
        ...{ type: kind, toolCallId, toolName },
        ...{ output: resultOutput(data), providerOptions },
      });
    case 'custom':
      return defined({ type: kind, kind: textAt(data, 'kind'), providerOptions });
    case 'reasoning-file':
      return defined({
        type: kind,
        data: fileBack(data['data']),
        mediaType: data['mediaType'],
        providerOptions,
      });
    default:
      return undefined;
  }
};

/** JSON has no URLs: a stored one is a string. */
const fileBack = (data: unknown): unknown =>
  at(data, 'type') === 'url' && URL.canParse(textAt(data, 'url'))
    ? { type: 'url', url: new URL(textAt(data, 'url')) }
    : data;

const resultOutput = ({ result, isError }: JsonRecord): JsonRecord => {
  const type = typeof result === 'string' ? 'text' : 'json';
  return { type: isError === true ? `error-${type}` : type, value: result };
};
