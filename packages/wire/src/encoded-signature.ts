import { exactJson, toExactJson } from 'millrace/values';
import { at } from './paths.js';

/**
 * Encodes a value that a vendor wants back unchanged as the signature of a thinking block. It contains the vendor,
 * because other vendors reject encrypted values, and the kind, which decides its position in a request.
 */
export const encodeSignature = (vendor: string, kind: string, value: unknown): string =>
  toExactJson({ vendor, kind, value });

/** Decodes a signature that was encoded for the same vendor and kind; returns `undefined` for any other signature. */
export const decodeSignature = (
  vendor: string,
  kind: string,
  signature: string | undefined,
): unknown => {
  const decoded = isEncodedSignature(signature) ? exactJson(signature) : undefined;
  return at(decoded, 'vendor') === vendor && at(decoded, 'kind') === kind
    ? at(decoded, 'value')
    : undefined;
};

/**
 * Whether `encodeSignature` created a signature. Signatures of vendors are base64, so they never start with a brace.
 */
export const isEncodedSignature = (signature: string | undefined): signature is string =>
  signature?.startsWith('{') === true;
