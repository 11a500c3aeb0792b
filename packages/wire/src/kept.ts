import { parsedJson } from '@millrace/core/adapter';
import { at } from './paths.js';

/**
 * Writes something that a vendor wants back unchanged as the signature of a thinking block. It names the vendor,
 * because what one has encrypted is refused by another, and the kind of thing, so that it goes back to its place.
 */
export const keep = (vendor: string, kind: string, value: unknown): string =>
  JSON.stringify({ vendor, kind, value });

/** Reads what `keep` wrote for the same vendor and kind; `undefined` for any other signature. */
export const kept = (vendor: string, kind: string, signature: string | undefined): unknown => {
  const told = isKept(signature) ? parsedJson(signature) : undefined;
  return at(told, 'vendor') === vendor && at(told, 'kind') === kind ? at(told, 'value') : undefined;
};

/** Tells a signature that `keep` wrote from one that a vendor did: those are base64. */
export const isKept = (signature: string | undefined): signature is string =>
  signature?.startsWith('{') === true;
