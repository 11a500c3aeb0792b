import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fromBase64url, toBase64url } from './base64url.js';

describe('base64url', () => {
  it('T12: matches other base64url encoders', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = toBase64url(bytes);
        expect(text).toBe(Buffer.from(bytes).toString('base64url'));
        expect(fromBase64url(text)).toEqual(new Uint8Array(bytes));
      }),
    );
  });

  it('T12: encodes the same bytes as exactly one string', () => {
    expect(fromBase64url('_-8')).toEqual(new Uint8Array([255, 239]));
    expect(['_-9', '_-8=', '/+8', '_-8\n', ' _-8', '_', '_-8.', 'é'].map(fromBase64url)).toEqual(
      Array.from({ length: 8 }, () => undefined),
    );
  });
});
