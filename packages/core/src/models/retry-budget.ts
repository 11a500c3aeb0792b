import type { RetryBudget } from '../model.js';

export const createRetryBudget = (requests: number): RetryBudget => {
  let left = requests;
  return {
    take: () => {
      if (left <= 0) return false;
      left -= 1;
      return true;
    },
  };
};
