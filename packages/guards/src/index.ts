export {
  injectionHeuristic,
  type InjectionHeuristicOptions,
  type InjectionPattern,
  type InjectionSignal,
  injectionSignals,
} from './injection-heuristic.js';
