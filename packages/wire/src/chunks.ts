import type { ModelChunk } from 'millrace';

/** Returns a chunk with the text, or no chunk if the text is empty. */
export const textChunks = (type: 'text' | 'thinking', text: string): readonly ModelChunk[] =>
  text === '' ? [] : [{ type, text }];

/** Returns a chunk that closes the preceding thinking with its signature, or no chunk if the signature is empty. */
export const signatureChunks = (
  signature: string,
  { redacted = false }: { readonly redacted?: boolean } = {},
): readonly ModelChunk[] =>
  signature === ''
    ? []
    : [{ type: 'thinking', text: '', signature, ...(redacted ? { redacted } : {}) }];

/** The index of a tool call among the blocks of an answer, if the vendor sends one. */
export const blockIndex = (index: unknown): { readonly index?: number } =>
  typeof index === 'number' ? { index } : {};
