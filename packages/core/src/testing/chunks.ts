import type { Finish, ModelChunk } from '../model.js';

/** A delta of text. */
export const text = (delta: string): ModelChunk => ({ type: 'text', text: delta });

/** A delta of thinking. */
export const thinking = (delta: string): ModelChunk => ({ type: 'thinking', text: delta });

/** A whole tool use. Without an id, the call gives it one. */
export const toolUse = (
  name: string,
  input: Readonly<Record<string, unknown>> = {},
  id?: string,
): ModelChunk => ({ type: 'toolUse', name, input, ...(id === undefined ? {} : { id }) });

/** The end of an answer. */
export const finish = (why: Finish | 'pause' = 'stop'): ModelChunk => ({
  type: 'finish',
  finish: why,
});
