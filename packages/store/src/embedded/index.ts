export { type EmbeddedOptions, openEmbedded } from './open-embedded.js';
export type { FileCallsOptions } from '../files/file-calls.js';
export type { DatabaseStore, Store } from '../store.js';
export type { StoredMemoryOptions } from '../sql/memory-options.js';
