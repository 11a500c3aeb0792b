export { type Citation, type Citations, citationsIn } from './citations.js';
export { addSources, numbered } from './numbered.js';
export { retrieve } from './retrieve.js';
export type { RetrievalQuery, RetrievedPassage, Retriever, Span } from './retriever.js';
