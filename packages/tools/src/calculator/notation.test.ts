import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isQuick } from '../is-quick.test-support.js';
import { toNotation } from './notation.js';

describe('toNotation', () => {
  it.each([
    ['2,349 + 1', '2349 + 1'],
    ['1,234,567.5', '1234567.5'],
    ['2,349 + max(1,234)', '2349 + max(1,234)'],
    ['(2,349) * 2', '(2349) * 2'],
    ['1_000_000', '1000000'],
    ['12,34', '12,34'],
    ['3 × 4 ÷ 2', '3 * 4 / 2'],
    ['3x4', '3 * 4'],
    ['0x10', '0x10'],
    ['5 − 3', '5 - 3'],
    ['5 m²', '5 m^2'],
    ['√16 + √(9)', 'sqrt(16) + sqrt(9)'],
    ['the square root of 9', 'sqrt(9)'],
    ['2**10', '2^10'],
    ['2π', '2pi'],
    ['What is 3 plus 4?', '3 + 4'],
    ['5% of 80', '(5 percent) * 80'],
    ['7 % 3', '7 % 3'],
    ['7 % -3', '(7 percent) -3'],
    ['$1,200 * 5%', '1200 * (5 percent)'],
    ['5 in to cm', '5  inch  to cm'],
    ['5 inches in cm', '5 inches in cm'],
    ['300 K to C', '300 K to degC'],
    ['5 C', '5 C'],
    ['½ of 10', '(1/2) * 10'],
    ['2½ cups', '(2+1/2) cups'],
    ['12½%', '(12+1/2) percent'],
  ])('reads %s', (expression, notation) => {
    expect(toNotation(expression)).toBe(notation);
  });

  it('leaves the signs of two currencies, which must not be added up', () => {
    expect(toNotation('$5 + €3')).toBe('$5 + €3');
  });

  it('takes any text, quickly', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 500 }), (text) => {
        expect(typeof toNotation(text)).toBe('string');
      }),
    );
    const convert = (): void => {
      for (const part of ['1,', '(', '1 ', '% ', 'in ', '√', '$', 'x1', '1e+', ' ']) {
        toNotation(part.repeat(500 / part.length));
      }
    };
    expect(isQuick(200, convert)).toBe(true);
  });
});
