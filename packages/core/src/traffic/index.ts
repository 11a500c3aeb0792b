export { type Budget, budget, type BudgetOptions, sharedBudget, type Spent } from './budget.js';
export {
  type ConcurrencyLimit,
  limitConcurrency,
  type LimitConcurrencyOptions,
} from './limit-concurrency.js';
export { limitCalls } from './limit-calls.js';
export { limitRate, type LimitRateOptions } from './limit-rate.js';
export { createSemaphore, type Semaphore, type SemaphoreOptions } from './semaphore.js';
export type { Price, PriceTable } from './prices.js';
