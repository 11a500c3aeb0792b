// What makes long conversations fit.
export type { TokenSample } from './calibration.js';
export { countMessages, countRequest, type CountedRequest } from './count-request.js';
export { estimateText, estimateTokens } from './estimate-tokens.js';
export { fitContext, type FitContextOptions } from './fit-context.js';
export { fitMessages, type FitOptions, type Fitted } from './fit-messages.js';
export { learnUsage } from './learn-usage.js';
export {
  createTokenCounter,
  type TokenCounter,
  type TokenCounterOptions,
} from './token-counter.js';
