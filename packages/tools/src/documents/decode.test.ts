import { describe, expect, it } from '@jest/globals';
import { decodeText } from './decode.js';

describe('decodeText', () => {
  it.each([
    ['Windows-1252, if it is not UTF-8', Buffer.from('\x93caf\xe9\x94 \x80', 'latin1'), '“café” €'],
    ['UTF-8', Buffer.from('“café” €'), '“café” €'],
    ['UTF-16, by its mark', Buffer.from('\ufeff“café”', 'utf16le'), '“café”'],
  ])('reads %s', (_name, bytes, text) => {
    expect(decodeText(bytes, false)).toBe(text);
  });
});
