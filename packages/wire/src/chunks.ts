import type { ModelChunk } from '@millrace/core';

/** Makes a chunk of text, or none where it is empty. */
export const textChunks = (type: 'text' | 'thinking', text: string): readonly ModelChunk[] =>
  text === '' ? [] : [{ type, text }];

/** Makes a chunk that ends the thinking before it with its signature, or none where that is empty. */
export const signatureChunks = (
  signature: string,
  { redacted = false }: { readonly redacted?: boolean } = {},
): readonly ModelChunk[] =>
  signature === ''
    ? []
    : [{ type: 'thinking', text: '', signature, ...(redacted ? { redacted } : {}) }];

/** The place of a tool use among the blocks of an answer, as far as it is told. */
export const placeOf = (index: unknown): { readonly index?: number } =>
  typeof index === 'number' ? { index } : {};
