// Layers and functions around models and calls: circuit breaker, response cache, routing, canary, hedged requests, live
// inputs, tools that start early, summaries for slow readers.
export {
  cacheResponses,
  type CacheResponsesOptions,
  isCacheable,
  type MeaningOptions,
} from './cache-responses.js';
export {
  circuitBreaker,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitChange,
  type CircuitState,
} from './circuit-breaker.js';
export {
  type CachedResponse,
  inProcessResponses,
  type ResponseStore,
  type SimilarQuestion,
  type SimilarResponse,
} from './response-store.js';
export { canary, type CanaryOptions } from './canary.js';
export {
  byCost,
  type ByCostOptions,
  byLength,
  type Route,
  type RoutedModels,
  routeModels,
  type RouteModelsOptions,
  type RoutePolicy,
  type RouteRequest,
} from './route-models.js';
export { hedge, type HedgeOptions } from './hedge.js';
export { liveInstructions, liveModel, liveTools } from './live-inputs.js';
export type { LiveOptions } from './live-source.js';
export { type DeltaOf, digestMap, type DigestMapOptions } from './digest-map.js';
export { speculate, type SpeculateOptions } from './speculate.js';
