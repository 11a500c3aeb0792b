export {
  circuitBreaker,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitChange,
  type CircuitState,
} from './circuit-breaker.js';
