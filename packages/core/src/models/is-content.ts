import type { ModelChunk } from '../model.js';

/** Tells whether a chunk shows something of an answer. A sign of life, an empty delta or a count does not. */
export const isContent = (chunk: ModelChunk): boolean => {
  switch (chunk.type) {
    case 'text':
      return chunk.text !== '';
    case 'thinking':
      return chunk.text !== '' || chunk.signature !== undefined;
    case 'toolUse':
    case 'block':
    case 'malformed':
      return true;
    case 'usage':
    case 'restart':
    case 'finish':
      return false;
  }
};
