// What makes long conversations fit: `fitContext` for most, `withEviction` for agents whose tools bring much.
export { estimateTokens } from '../../models/estimate-tokens.js';
export type { TokenCounter } from '../../models/count-request.js';
export { fitContext, shortenOnOverflow, withEviction } from './fit-context.js';
