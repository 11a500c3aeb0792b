// Baselines in files, on Node.js, Bun and Deno.
export { type BaselineCheck, type CheckBaselineOptions, checkBaseline } from './check-baseline.js';
