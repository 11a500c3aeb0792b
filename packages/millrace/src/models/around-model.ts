import type { Model, ModelChunk } from './model.js';

/** Wraps a model: replaces its `stream$`, and keeps what it says of itself but for the differences. */
export const aroundModel = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
  differences: Partial<Pick<Model, 'unsupported' | 'keepsTime' | 'toolsInPrompt'>> = {},
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...(toolsInPrompt === undefined ? {} : { toolsInPrompt }),
  ...differences,
  stream$,
});

/** Whether a chunk has content. Heartbeats, empty deltas and usage have none. */
export const hasContent = (chunk: ModelChunk): boolean => {
  switch (chunk.type) {
    case 'text':
      return chunk.text !== '';
    case 'thinking':
      return chunk.text !== '' || (chunk.signature ?? chunk.vendorData) !== undefined;
    case 'toolCall':
    case 'citation':
    case 'block':
    case 'malformed':
      return true;
    case 'textStart':
    case 'facts':
    case 'usage':
    case 'restart':
    case 'finish':
      return false;
  }
};
