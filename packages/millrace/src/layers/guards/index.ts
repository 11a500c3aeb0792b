// Guards of input, tool results and answers, redaction, and a marker that reveals leaked instructions.
export { canaryToken } from './canary-token.js';
export { allowList, denyList, maxInputLength, normalizeText } from './lists.js';
export { guardAnswer } from './guard-answer.js';
export { guardInput, type GuardVerdict } from './guard-input.js';
export { guardResults } from './guard-results.js';
export {
  injectionHeuristic,
  type InjectionSignal,
  injectionSignals,
} from './injection-heuristic.js';
export { ratePerUser } from './rate-per-user.js';
export { redact } from '../interceptors/redact.js';
