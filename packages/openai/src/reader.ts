import type { ModelChunk } from '@millrace/core';
import type { WireEvent } from '@millrace/wire';

/** Reads one answer of a vendor. It has a memory, so each answer needs its own. */
export interface Reader {
  /** Reads one event of a stream. */
  readonly read: (event: WireEvent) => readonly ModelChunk[];
  /** Reads an answer that came whole. */
  readonly readWhole: (body: unknown) => readonly ModelChunk[];
}

/** From whom an answer is read. */
export interface ReaderSource {
  /** What errors call the vendor. */
  readonly vendor: string;
  /** The name that we gave a tool, from the one that the vendor knows. */
  readonly toolName: (wireName: string) => string;
}

/** A chunk of text, or none where it is empty. */
export const textChunks = (type: 'text' | 'thinking', text: string): readonly ModelChunk[] =>
  text === '' ? [] : [{ type, text }];
