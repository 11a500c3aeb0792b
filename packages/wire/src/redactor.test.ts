import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createRedactor } from './redactor.js';

describe('createRedactor', () => {
  const secret = fc.string({ minLength: 6, maxLength: 40, unit: 'grapheme' });

  it('X10: finds a secret as it is, URL-encoded, in JSON, and in base64 at any place', () => {
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (key, before, behind) => {
        const clean = createRedactor([key]);
        const encoded = Buffer.from(before + key + behind);
        for (const text of [
          before + key + behind,
          before + encodeURIComponent(key) + behind,
          JSON.stringify(before + key + behind),
          encoded.toString('base64'),
          encoded.toString('base64url'),
        ]) {
          expect(clean(text)).toContain('[redacted]');
        }
      }),
    );
  });

  it('leaves everything else, and secrets that are ordinary words', () => {
    const clean = createRedactor(['abc', '', 'sk-123456']);
    expect(clean('abc def sk-12345')).toBe('abc def sk-12345');
    expect(clean('sk-123456, sk-123456')).toBe('[redacted], [redacted]');
  });

  it('X10: learns a secret that comes later', () => {
    const secrets = ['sk-123456'];
    const clean = createRedactor(secrets);
    expect(clean('sk-123456 sk-abcdef')).toBe('[redacted] sk-abcdef');
    secrets.push('sk-abcdef');
    expect(clean('sk-123456 sk-abcdef')).toBe('[redacted] [redacted]');
  });

  it('takes the longer of two secrets out whole', () => {
    const clean = createRedactor(['secret', 'secret-and-more']);
    expect(clean('secret-and-more')).toBe('[redacted]');
  });
});
