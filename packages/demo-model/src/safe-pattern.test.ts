import { describe, expect, it } from '@jest/globals';
import { compilePattern, longestForPattern } from './safe-pattern.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

describe('compilePattern', () => {
  it.each(['^ORD-\\d+$', '^[A-Z]{2,4}-\\d+$', '^(?:a|b)?c$', '^[^@]+@[^@]+\\.\\w+$'])(
    'takes %s',
    (pattern) => {
      expect(compilePattern(pattern)).toBeInstanceOf(RegExp);
    },
  );

  it.each([
    '^(a+)+$',
    '(a|aa)*b',
    '(a){2,}',
    '(?=a)b',
    '(?<!a)b',
    '(a)\\1',
    'a*b*c*d*e',
    '[',
    'a'.repeat(300),
    undefined,
    7,
  ])('passes over %p', (pattern) => {
    expect(compilePattern(pattern)).toBeUndefined();
  });

  it('is quick with the worst that it takes', () => {
    const pattern = compilePattern('^a*a*a*$');
    const start = cpuMs();
    for (let count = 0; count < 100; count += 1) pattern?.test(`${'a'.repeat(longestForPattern)}!`);
    expect(cpuMs() - start).toBeLessThan(1_000);
  });
});
