// What makes long conversations fit.
export type { TokenSample } from './calibration.js';
export { countMessages, countRequest, type CountedRequest } from './count-request.js';
export { estimateText, estimateTokens } from './estimate-tokens.js';
export { fitMessages, type FitOptions, type Fitted } from './fit-messages.js';
export {
  createTokenCounter,
  type TokenCounter,
  type TokenCounterOptions,
} from './token-counter.js';
