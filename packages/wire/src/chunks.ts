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

/** Asks the model again after an answer that ends with a tool call, and has none: what it announced is lost. */
export const missingCall: ModelChunk = {
  type: 'malformed',
  feedback:
    'Your message ended to call a tool, but it contains no tool call. Call an available tool, or answer with text.',
  why: 'The answer ends with a tool call, but has none.',
  isAnswer: false,
};

/** The index of a tool call among the blocks of an answer, if the vendor sends one. */
export const blockIndex = (index: unknown): { readonly index?: number } =>
  typeof index === 'number' ? { index } : {};
