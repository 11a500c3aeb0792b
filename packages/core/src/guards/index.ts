export { allowList, denyList, maxInputLength, type MaxInputLengthOptions } from './lists.js';
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
export { ratePerUser, type RatePerUserOptions } from './rate-per-user.js';
