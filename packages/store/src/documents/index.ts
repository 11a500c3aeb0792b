export {
  type DocumentIndex,
  documentIndex,
  type DocumentIndexOptions,
  type IndexProgress,
} from './document-index.js';
export type { IndexChunk, IndexDocument } from './document-rows.js';
export type { IndexEmbedder } from './embed-texts.js';
