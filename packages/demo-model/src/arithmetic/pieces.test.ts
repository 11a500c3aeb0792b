import { describe, expect, it } from '@jest/globals';
import { arithmeticPieces } from './pieces.js';

const typesIn = (text: string): readonly string[] =>
  arithmeticPieces(text).map((piece) => `${piece.type} ${piece.text}`);

describe('arithmeticPieces', () => {
  it('reads signs and words alike', () => {
    expect(typesIn('√9 × two squared')).toEqual([
      'function sqrt',
      'number 9',
      'operator *',
      'number 2',
      'suffix ^2',
    ]);
  });

  it('reads numbers as they are written', () => {
    expect(typesIn('2,349.5 1e3 .5 2 thousand, three and a half $5')).toEqual([
      'number 2349.5',
      'number 1e3',
      'number .5',
      'number 2000',
      'comma ,',
      'number 3.5',
      'number 5',
    ]);
  });

  it('takes no number out of names, dates and times', () => {
    const texts = 'SHA256 2025-01-31 1.2.3 12/25/2024 10:30 UTF-8 24/7';
    expect(arithmeticPieces(texts).map(({ type }) => type)).not.toContain('number');
  });

  it('says where each piece stands', () => {
    const text = 'the square root of 16 km';
    const [root, number, unit] = arithmeticPieces(text);
    expect(text.slice(root?.start, root?.end)).toBe('square root of');
    expect(text.slice(number?.start, unit?.end)).toBe('16 km');
  });

  it('tells a range from a subtraction', () => {
    expect(typesIn('chapter 3-5')).toContain('other -');
    expect(typesIn('5-3')).toContain('operator -');
    expect(typesIn('what is 3-5?')).toContain('operator -');
  });
});
