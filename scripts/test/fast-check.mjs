// Tests import this instead of fast-check: see `moduleNameMapper` in jest.config.ts.
import real from '../../node_modules/fast-check/lib/fast-check.js';
import { runs } from './runs.mjs';

export * from '../../node_modules/fast-check/lib/fast-check.js';

const defaultRuns = 100;

const scaled = (options = {}) => ({ ...options, numRuns: runs(options.numRuns ?? defaultRuns) });

/** Scales the number of runs of each property by `MILLRACE_RUNS`. */
export const assert = (property, options) => real.assert(property, scaled(options));
export const check = (property, options) => real.check(property, scaled(options));

export default { ...real, assert, check };
