// What makes long conversations fit: `fitContext` for most, `withEviction` for agents whose tools bring much.
export type { TokenSample } from './calibration.js';
export { estimateTokens } from './estimate-tokens.js';
export { type EvictionOptions } from './evict-results.js';
export { fitContext, type FitContextOptions } from './fit-context.js';
export { fitMessages, type FitOptions, type Fitted } from './fit-messages.js';
export { shortenOnOverflow } from './shorten-on-overflow.js';
export {
  createTokenCounter,
  type TokenCounter,
  type TokenCounterOptions,
} from './token-counter.js';
export { withEviction } from './with-eviction.js';
