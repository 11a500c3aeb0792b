// Reactive features around calls: live inputs, hedged requests, tools that start early, summaries for slow readers.
export { hedge, type HedgeOptions } from './hedge.js';
export { liveInstructions, liveModel, liveTools } from './live-inputs.js';
export type { LiveOptions } from './live-source.js';
export { type DeltaOf, digestMap, type DigestMapOptions } from './digest-map.js';
export { speculate, type SpeculateOptions } from './speculate.js';
