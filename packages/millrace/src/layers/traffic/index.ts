export { type Budget, budget, sharedBudget, type Spent } from './budget.js';
export { type Cost, cost, type CostShare, type PriceList, readPriceList } from './cost.js';
export { importPrices } from './import-prices.js';
export { checkPrices, type Price, priceOf, type PriceTable } from './prices.js';
export type { ConcurrencyLimit, Semaphore } from './limit-concurrency.js';
export { createSemaphore, limitCalls, limitConcurrency } from './limit-concurrency.js';
export { limitRate } from './limit-rate.js';
