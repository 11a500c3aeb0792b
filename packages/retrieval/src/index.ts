export {
  byHeadings,
  bySize,
  type Chunk,
  type ChunkedDocument,
  chunked,
  type Chunker,
  type TextDocument,
} from './documents/chunks.js';
export { documentsIn, type DocumentsInOptions } from './documents/documents-in.js';
export { offlineEmbedder } from './embed/offline-embedder.js';
export { citableIn, retrieverTool, type RetrieverToolOptions } from './retriever-tool.js';
