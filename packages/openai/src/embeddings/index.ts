export { type EmbeddingModel, embeddings, type EmbeddingsOptions } from './embeddings.js';
