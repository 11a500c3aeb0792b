export { documentsIn, type DocumentsInOptions } from './documents/documents-in.js';
export { offlineEmbedder } from './embed/offline-embedder.js';
