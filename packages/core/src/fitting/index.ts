// What makes long conversations fit: `fitContext` for most, `withEviction` for agents whose tools bring much.
export type { TokenCounter } from './token-counter.js';
export { estimateTokens } from './estimate-tokens.js';
export {
  type EvictionOptions,
  fitContext,
  type FitContextOptions,
  shortenOnOverflow,
  withEviction,
} from './fit-context.js';
