// What makes long conversations fit: `fitContext` for most, `withEviction` for agents whose tools bring much.
export {
  createTokenCounter,
  type TokenCounter,
  type TokenCounterOptions,
  type TokenSample,
} from './token-counter.js';
export { estimateTokens } from './estimate-tokens.js';
export { type EvictionOptions, withEviction } from './with-eviction.js';
export { fitContext, type FitContextOptions, shortenOnOverflow } from './fit-context.js';
export { fitMessages, type FitOptions, type Fitted } from './fit-messages.js';
