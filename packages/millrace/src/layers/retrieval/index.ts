// Retrieval: documents in chunks, passages to cite, search by words and by meaning, before a call or by a tool.
export {
  byHeadings,
  bySize,
  type Chunk,
  type ChunkedDocument,
  chunked,
  type Chunker,
  type MarkdownLine,
  markdownLines,
  type TextDocument,
} from './chunks.js';
export { type Citation, type Citations, citationsIn } from './citations.js';
export { createMeaningIndex, fuseRankings } from './meaning-index.js';
export {
  addSources,
  numbered,
  type RetrievalQuery,
  type RetrievedPassage,
  type Retriever,
  type Span,
} from './passages.js';
export { retrieve } from './retrieve.js';
export { citableIn, retrieverTool } from './retriever-tool.js';
