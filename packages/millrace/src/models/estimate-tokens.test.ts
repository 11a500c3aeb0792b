import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { estimateText, estimateTokens } from './estimate-tokens.js';

/** The rule C3, word by word. */
const byTheRule = (text: string): number => {
  if (text === '') return 0;
  const isIn = (code: number, ...ranges: readonly (readonly [number, number])[]): boolean =>
    ranges.some(([from, to]) => code >= from && code <= to);
  const codes = Array.from(text).map((character) => character.codePointAt(0) ?? 0);
  const latin = codes.filter((code) => code <= 0x7f).length;
  const isCjk = (code: number) => isIn(code, [0x4e00, 0x9fff], [0xac00, 0xd7af], [0x3040, 0x30ff]);
  const isEmoji = (code: number) =>
    isIn(code, [0x1f300, 0x1faff], [0x2600, 0x27bf], [0xfe00, 0xfe0f]);
  const cjk = codes.filter(isCjk).length;
  const emoji = codes.filter(isEmoji).length;
  const other = codes.length - latin - cjk - emoji;
  const divided = (a: number, b: number): number => Math.trunc(a / b);
  return Math.max(1, divided(latin, 4) + divided(cjk * 2 + 1, 3) + emoji + divided(other, 3));
};

const edges = [0x7f, 0x80, 0x303f, 0x3040, 0x30ff, 0x3100, 0x4dff, 0x4e00, 0x9fff, 0xa000, 0xabff]
  .concat([0xac00, 0xd7af, 0xd7b0, 0x25ff, 0x2600, 0x27bf, 0x27c0, 0xfdff, 0xfe00, 0xfe0f, 0xfe10])
  .concat([0x1f2ff, 0x1f300, 0x1faff, 0x1fb00, 0xd800, 0xdfff]);

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme-ascii' }),
  fc.array(fc.constantFrom(...edges)).map((codes) => String.fromCodePoint(...codes)),
);

describe('estimateTokens', () => {
  it.each([
    ['', 0],
    ['a', 1],
    ['hello world', 2],
    ['안녕하세요', 3],
    ['👍🏽', 2],
    ['привет', 2],
    ['日本語です', 3],
    ['☀️', 2],
  ])('C3: %j is %i', (said, tokens) => {
    expect(estimateTokens(said)).toBe(tokens);
  });

  it('C3: is the rule, for any text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(estimateTokens(text)).toBe(byTheRule(text));
      }),
      { numRuns: 500 },
    );
  });
});

describe('estimateText', () => {
  it.each([
    ['', 0],
    ['The mill stood where the stream left the hills.', 11],
    ['12345678', 3],
    ['3.14, 2.71', 7],
    ['{"a":1,"b":"c"}', 6],
    ['if (a && b) run();', 4],
    ['👍🏽', 4],
    ['日本語です', 4],
  ])('C3: %j is about %i', (said, tokens) => {
    expect(estimateText(said)).toBe(tokens);
  });

  it('C3: is a whole number, never below the estimate', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const tokens = estimateText(text);
        expect(Number.isInteger(tokens)).toBe(true);
        expect(tokens).toBeGreaterThanOrEqual(estimateTokens(text));
      }),
    );
  });
});
