import { defined } from './options.js';
import type { Usage } from './usage.js';

/** A usage with what its provider has told since: what is told later replaces what was told before, field by field. */
export const updatedUsage = (usage: Usage, told: Partial<Usage>): Usage => ({
  ...usage,
  ...defined(told),
});
