export { estimateTokens } from '../../models/estimate-tokens.js';
export type { TokenCounter } from '../../models/count-request.js';
export { fitContext, withEviction } from './fit-context.js';
