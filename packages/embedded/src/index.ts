export { embedded, type EmbeddedOptions } from './embedded.js';
export { embeddedDescription } from './introduce.js';
