export { allowList, denyList } from './lists.js';
export { type GuardAnswerOptions, type GuardedAnswer, guardAnswer } from './guard-answer.js';
export {
  type GuardedInput,
  guardInput,
  type GuardOptions,
  type GuardVerdict,
} from './guard-input.js';
export { type GuardedResult, guardResults, type GuardResultsOptions } from './guard-results.js';
export {
  injectionHeuristic,
  type InjectionHeuristicOptions,
  type InjectionPattern,
  type InjectionSignal,
  injectionSignals,
} from './injection-heuristic.js';
export { maxInputLength, type MaxInputLengthOptions } from './max-input-length.js';
export { ratePerUser, type RatePerUserOptions } from './rate-per-user.js';
