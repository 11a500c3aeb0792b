export { type Citation, type Citations, citationsIn } from './citations.js';
export {
  addSources,
  numbered,
  type RetrievalQuery,
  type RetrievedPassage,
  type Retriever,
  type Span,
} from './passages.js';
export { retrieve } from './retrieve.js';
