export { type Budget, budget, type Price, sharedBudget, type Spent } from './budget.js';
export type { ConcurrencyLimit, Semaphore } from './limit-concurrency.js';
export { createSemaphore, limitCalls, limitConcurrency } from './limit-concurrency.js';
export { limitRate } from './limit-rate.js';
