export { type EmbeddedOptions, openEmbedded } from './open-embedded.js';
export type { FileCallsOptions } from '../files/file-calls.js';
export type { Store } from '../store.js';
