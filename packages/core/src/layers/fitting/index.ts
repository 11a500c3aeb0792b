export { estimateTokens } from '../../models/estimate-tokens.js';
export type { TokenCounter } from '../../models/count-request.js';
export { fitContext, shortenOnOverflow, withEviction } from './fit-context.js';
