export { allowList, denyList, maxInputLength } from './lists.js';
export { guardAnswer } from './guard-answer.js';
export { guardInput, type GuardVerdict } from './guard-input.js';
export { guardResults } from './guard-results.js';
export type { InjectionSignal } from './injection-heuristic.js';
export { injectionHeuristic, injectionSignals } from './injection-heuristic.js';
export { ratePerUser } from './rate-per-user.js';
