export { documentsIn, type DocumentsInOptions } from './documents-in.js';
export { offlineEmbedder } from './offline-embedder.js';
