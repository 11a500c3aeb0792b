export {
  type Budget,
  budget,
  type BudgetOptions,
  type Price,
  type PriceTable,
  sharedBudget,
  type Spent,
} from './budget.js';
export {
  type ConcurrencyLimit,
  createSemaphore,
  limitCalls,
  limitConcurrency,
  type LimitConcurrencyOptions,
  type Semaphore,
  type SemaphoreOptions,
} from './limit-concurrency.js';
export { limitRate, type LimitRateOptions } from './limit-rate.js';
