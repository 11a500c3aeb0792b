import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { textFromBase64, toBase64 } from './base64.js';

describe('base64', () => {
  it('is that of Node, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const base64 = toBase64(new TextEncoder().encode(text));
        expect(base64).toBe(Buffer.from(text).toString('base64'));
        expect(textFromBase64(base64)).toBe(text);
        expect(textFromBase64(`${base64.replaceAll('=', '')}\n`)).toBe(text);
      }),
    );
  });

  it.each(['A', '%', 'w6k=w6k='])('%j is no text', (malformed) => {
    expect(textFromBase64(malformed)).toBe('');
  });
});
