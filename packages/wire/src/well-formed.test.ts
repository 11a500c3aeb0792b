import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { wellFormed } from './well-formed.js';

describe('wellFormed', () => {
  it('X16: writes no half character, and changes nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('\ud83d', '\ude00', '\\', 'ud83d', '"', 'x')),
        (parts) => {
          const text = parts.join('');
          const fixed: unknown = JSON.parse(wellFormed(JSON.stringify({ text })));
          expect(fixed).toEqual({ text: new TextDecoder().decode(new TextEncoder().encode(text)) });
        },
      ),
    );
  });

  it('keeps characters that are written as two escapes', () => {
    for (const json of ['"\\ud83d\\ude00"', '"\\uD83D\\uDE00"', '"\\\\ud83d"', '"plain"']) {
      expect(wellFormed(json)).toBe(json);
    }
    expect(wellFormed('"\\uD83D!\\uDE00"')).toBe('"\\ufffd!\\ufffd"');
  });
});
