import type { ThinkingBlock } from '@millrace/core';
import { at, parsed } from './json.js';

/** What vendors want back as they said it. */
export type KeptKind = 'reasoning_details' | 'extra_content' | 'item' | 'phase';

/**
 * Writes something that a vendor wants back unchanged as the signature of a thinking block. It names the vendor,
 * because what one has encrypted is refused by another.
 */
export const keep = (vendor: string, kind: KeptKind, value: unknown): string =>
  JSON.stringify({ vendor, kind, value });

/** Reads what `keep` wrote for the same vendor; `undefined` for any other signature. */
export const kept = (
  vendor: string,
  kind: KeptKind,
  { signature = '' }: Pick<ThinkingBlock, 'signature'>,
): unknown => {
  const told = parsed(signature);
  return at(told, 'vendor') === vendor && at(told, 'kind') === kind ? at(told, 'value') : undefined;
};
