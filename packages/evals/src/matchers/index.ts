// Matchers for `expect.extend()` of Jest and Vitest.
export { type EvalMatchers, evalMatchers } from './eval-matchers.js';
