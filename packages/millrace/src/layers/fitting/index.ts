export { estimateTokens } from '../../models/estimate-tokens.js';
export { countRequest, plainCounter, type TokenCounter } from '../../models/count-request.js';
export { fitContext, withEviction } from './fit-context.js';
