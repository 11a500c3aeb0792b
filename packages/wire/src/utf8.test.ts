import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createUtf8 } from './utf8.js';

/** The text of bytes that come in pieces of these sizes. */
const textOf = (bytes: Uint8Array, sizes: readonly number[]): string => {
  const utf8 = createUtf8();
  const texts: string[] = [];
  let from = 0;
  for (const size of sizes) texts.push(utf8.push(bytes.subarray(from, (from += size))));
  return [...texts, utf8.push(bytes.subarray(from)), utf8.end()].join('');
};

const whole = new TextDecoder('utf-8', { ignoreBOM: true });
const sizes = fc.array(fc.nat({ max: 5 }), { maxLength: 40 });

describe('createUtf8', () => {
  it('X5: gives the same text wherever the bytes are cut', () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 });
    fc.assert(
      fc.property(text, sizes, (written, cuts) => {
        const bytes = new TextEncoder().encode(written);
        expect(textOf(bytes, cuts)).toBe(whole.decode(bytes));
      }),
    );
  });

  it('X5: gives the same U+FFFD for what is no UTF-8, wherever it is cut', () => {
    const byte = fc.oneof(
      fc.nat({ max: 255 }),
      fc.constantFrom(0x41, 0x80, 0xbf, 0xc2, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), sizes, (given, cuts) => {
        const bytes = Uint8Array.from(given);
        expect(textOf(bytes, cuts)).toBe(whole.decode(bytes));
      }),
      { numRuns: 500 },
    );
  });

  it('gives each character as soon as it is whole', () => {
    const utf8 = createUtf8();
    const given = Array.from(new TextEncoder().encode('aé€😀'), (byte) =>
      utf8.push(Uint8Array.of(byte)),
    );
    expect(given).toEqual(['a', '', 'é', '', '', '€', '', '', '', '😀']);
    expect(utf8.end()).toBe('');
  });

  it('keeps a mark that it finds at the beginning of a read within text', () => {
    const utf8 = createUtf8();
    const mark = new TextEncoder().encode('\uFEFF');
    expect([mark, mark].map((bytes) => utf8.push(bytes))).toEqual(['\uFEFF', '\uFEFF']);
  });

  it('keeps nothing of a read but what is cut', () => {
    const utf8 = createUtf8();
    const bytes = new TextEncoder().encode('x€').subarray(0, 3);
    expect(utf8.push(bytes)).toBe('x');
    bytes.fill(0);
    expect(utf8.push(Uint8Array.of(0xac))).toBe('€');
  });
});
