export { type Citation, type Citations, citationsIn, type CitedNumber } from './citations.js';
export { numbered } from './numbered.js';
export { retrieve, type RetrieveOptions } from './retrieve.js';
export type { RetrievalQuery, RetrievedPassage, Retriever, Span } from './retriever.js';
