import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  calibrated,
  type Calibration,
  factorOf,
  uncalibrated,
} from '../../models/count-request.js';

const after = (ratios: readonly number[], estimated = 1_000): number =>
  factorOf(
    ratios.reduce<Calibration>(
      (state, ratio) => calibrated(state, { estimated, actual: estimated * ratio }),
      uncalibrated,
    ),
  );

describe('calibration', () => {
  it('C3: is what the provider counted, after three requests', () => {
    expect(after([])).toBe(1);
    expect(after([1.4])).toBe(1);
    expect(after([1.4, 1.4])).toBe(1.2);
    expect(after([1.4, 1.4, 1.4])).toBe(1.4);
    expect(after(Array<number>(20).fill(0.7))).toBe(0.7);
  });

  it('C3: goes along when the conversation changes', () => {
    expect(after([...Array<number>(20).fill(0.8), ...Array<number>(5).fill(1.3)])).toBe(1.3);
  });

  it('C3: learns nothing of small requests, of none, and of those that were counted in part', () => {
    expect(after([1.4, 1.4, 1.4], 199)).toBe(1);
    expect(after([1.4, 1.4, 1.4], 200)).toBe(1.4);
    expect(after([0.49, 0.1, 0, -1, NaN, Infinity])).toBe(1);
    expect(after([1.4, 1.4, 1.4], 0)).toBe(1);
  });

  it('C3: stays between 0.5 and 2, no matter what comes', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: false })), fc.double(), (ratios, estimated) => {
        const factor = after(ratios, estimated);
        expect(factor).toBeGreaterThanOrEqual(0.5);
        expect(factor).toBeLessThanOrEqual(2);
      }),
    );
  });

  it('C3: up to four odd requests of nine do not move it beyond the others', () => {
    const good = fc.double({ min: 0.9, max: 1.2, noNaN: true });
    const odd = fc.double({ min: 0.5, max: 100, noNaN: true });
    const mixed = fc
      .nat(4)
      .chain((some) =>
        fc.tuple(
          fc.array(good, { minLength: 9 - some, maxLength: 9 - some }),
          fc.array(odd, { minLength: some, maxLength: some }),
        ),
      )
      .chain(([a, b]) => fc.shuffledSubarray([...a, ...b], { minLength: 9 }));
    fc.assert(
      fc.property(fc.array(odd), mixed, (before, ratios) => {
        const factor = after([...before, ...ratios]);
        expect(factor).toBeGreaterThanOrEqual(0.9 - 1e-9);
        expect(factor).toBeLessThanOrEqual(1.2 + 1e-9);
      }),
    );
  });

  it('X18: remembers nine requests', () => {
    const long = Array.from({ length: 1_000 }).reduce<Calibration>(
      (state) => calibrated(state, { estimated: 500, actual: 600 }),
      uncalibrated,
    );
    expect(long.ratios).toHaveLength(9);
  });
});
