// Baselines in files, on Node.js, Bun and Deno.
export {
  type BaselineCheck,
  type CheckBaselineOptions,
  checkBaseline,
  hasBaseline,
} from './check-baseline.js';
