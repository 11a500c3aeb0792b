// Tests import this instead of fast-check: see `moduleNameMapper` in jest.config.ts.
import { createHash } from 'node:crypto';
import real from '../../node_modules/fast-check/lib/fast-check.js';
import { runs } from './runs.mjs';

export * from '../../node_modules/fast-check/lib/fast-check.js';

const defaultRuns = 100;
/** Set by `npm run fuzz`: the seconds of each property, or the seed and path of a failure to repeat. */
const { MILLRACE_FUZZ_SECONDS: seconds, MILLRACE_REPEAT: repeat } = process.env;
/** A property in a table runs once for each row: after four times the seconds of one, the others of the file get one second. */
const began = performance.now();
const secondsLeft = () =>
  performance.now() - began < 4_000 * Number(seconds) ? Number(seconds) : 1;

/** The same test has the same seed everywhere. */
function seed() {
  const { testPath = '', currentTestName = '' } = globalThis.expect.getState();
  const name = `${testPath.split(/[/\\]/).at(-1)} ${currentTestName}`;
  return createHash('sha256').update(name).digest().readInt32LE();
}

function chosen({ numRuns = defaultRuns, ...options } = {}) {
  if (repeat !== undefined) {
    const [found, path] = repeat.split('/');
    return { ...options, numRuns, seed: Number(found), path };
  }
  if (seconds === undefined) return { seed: seed(), ...options, numRuns: runs(numRuns) };
  return {
    ...options,
    numRuns: 1_000_000,
    interruptAfterTimeLimit: secondsLeft() * 1_000,
    markInterruptAsFailure: false,
  };
}

/** Fixes the seed of each property, and scales its number of runs by `MILLRACE_RUNS`. */
export const assert = (property, options) => real.assert(property, chosen(options));
export const check = (property, options) => real.check(property, chosen(options));
export const sample = (arbitrary, options) =>
  real.sample(arbitrary, {
    seed: seed(),
    ...(typeof options === 'number' ? { numRuns: options } : options),
  });

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

export default { ...real, assert, check, sample, string };
