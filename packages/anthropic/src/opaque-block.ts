import type { BetaContentBlockParam as ContentBlockParam } from '@anthropic-ai/sdk/resources/beta/messages';
import { isRecord } from '@millrace/core/values';
import { decodeSignature, encodeSignature } from '@millrace/wire';

/** Types with an equivalent in Millrace messages. */
const understood = [
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'image',
  'document',
] as const;

/** A block that only Anthropic understands, such as the call of a built-in tool. */
export type OpaqueBlock = Exclude<
  ContentBlockParam,
  { readonly type: (typeof understood)[number] }
>;

export const isOpaque = (block: unknown): block is OpaqueBlock =>
  isRecord(block) &&
  typeof block['type'] === 'string' &&
  !understood.some((type) => type === block['type']);

/**
 * Encodes a block as the signature of redacted thinking, which keeps its position in a message. Anthropic only
 * continues a paused answer if all of its blocks are sent back.
 */
export const encodeBlock = (block: unknown): string => encodeSignature('Anthropic', 'block', block);

/** Decodes a signature of `encodeBlock`; returns `undefined` for any other signature. */
export const decodeBlock = (signature: string): OpaqueBlock | undefined => {
  const block = decodeSignature('Anthropic', 'block', signature);
  return isOpaque(block) ? block : undefined;
};
