// Tests import this instead of fast-check: see `moduleNameMapper` in jest.config.ts.
import real from '../../node_modules/fast-check/lib/fast-check.js';
import { runs } from './runs.mjs';

export * from '../../node_modules/fast-check/lib/fast-check.js';

const defaultRuns = 100;

const scaled = (options = {}) => ({ ...options, numRuns: runs(options.numRuns ?? defaultRuns) });

/** Scales the number of runs of each property by `MILLRACE_RUNS`. */
export const assert = (property, options) => real.assert(property, scaled(options));
export const check = (property, options) => real.check(property, scaled(options));

/** What fast-check does with `unit: 'binary'`, without its table of a million code points for each test file. */
const codePoints = real.nat({ max: 0x10f7ff }).map(
  (index) => String.fromCodePoint(index < 0xd800 ? index : index + 0x800),
  (text) => {
    const point = [...String(text)].length === 1 ? text.codePointAt(0) : undefined;
    if (point === undefined || (point >= 0xd800 && point < 0xe000)) throw new Error('Not one.');
    return point < 0xd800 ? point : point - 0x800;
  },
);

export const string = (constraints = {}) =>
  real.string(constraints.unit === 'binary' ? { ...constraints, unit: codePoints } : constraints);

export default { ...real, assert, check, string };
