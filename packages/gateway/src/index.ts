// The features of an AI gateway, as layers and functions around models: circuit breaker, response cache, routing, canary.
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
