// Reads agent canvases of RAGFlow as documents of flows.
export { type FromRagflow, fromRagflow } from './from-ragflow.js';
export type { Unmapped } from './canvas.js';
