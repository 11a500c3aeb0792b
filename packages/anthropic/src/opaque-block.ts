import type { ContentBlockParam } from '@anthropic-ai/sdk/resources/messages';
import { isRecord } from '@millrace/wire';

/** What messages of ours say in other ways. */
const understood = [
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'image',
  'document',
] as const;

/** A block that only Anthropic understands, such as a search that it ran itself. */
export type OpaqueBlock = Exclude<
  ContentBlockParam,
  { readonly type: (typeof understood)[number] }
>;

/** Tells whether a block of an answer says nothing to anybody but Anthropic. */
export const isOpaque = (block: unknown): block is OpaqueBlock =>
  isRecord(block) &&
  typeof block['type'] === 'string' &&
  !understood.some((type) => type === block['type']);

/**
 * Writes a block as the signature of redacted thinking, so that a message of ours keeps it in its place: an answer
 * that paused is continued only if all of it comes back. It names the vendor, because no other may get it.
 */
export const keep = (block: unknown): string =>
  JSON.stringify({ vendor: 'Anthropic', kind: 'block', value: block });

/** Reads what `keep` wrote; `undefined` for any other signature. */
export const kept = (signature: string): OpaqueBlock | undefined => {
  const told = isWritten(signature) ? parsed(signature) : undefined;
  if (!isRecord(told) || told['vendor'] !== 'Anthropic') return undefined;
  return isOpaque(told['value']) ? told['value'] : undefined;
};

/** Tells a signature that an adapter wrote from one that a vendor did. */
export const isWritten = (signature: string): boolean => signature.startsWith('{');

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
