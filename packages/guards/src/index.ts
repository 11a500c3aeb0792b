export { canaryToken, type CanaryTokenOptions } from './canary-token.js';
export {
  injectionHeuristic,
  type InjectionHeuristicOptions,
  type InjectionPattern,
  type InjectionSignal,
  injectionSignals,
} from './injection-heuristic.js';
