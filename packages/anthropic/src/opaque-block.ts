import type { ContentBlockParam } from '@anthropic-ai/sdk/resources/messages';
import { isRecord } from '@millrace/core/adapter';
import { decodeSignature, encodeSignature } from '@millrace/wire';

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
 * that paused is continued only if all of it comes back.
 */
export const encodeBlock = (block: unknown): string => encodeSignature('Anthropic', 'block', block);

/** Reads what `keepBlock` wrote; `undefined` for any other signature. */
export const decodeBlock = (signature: string): OpaqueBlock | undefined => {
  const block = decodeSignature('Anthropic', 'block', signature);
  return isOpaque(block) ? block : undefined;
};
