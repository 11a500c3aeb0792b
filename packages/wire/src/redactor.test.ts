import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPlaceholder } from './is-placeholder.js';
import { createRedactor } from './redactor.js';

describe('createRedactor', () => {
  const secret = fc
    .string({ minLength: 6, maxLength: 40, unit: 'grapheme' })
    .filter((key) => !isPlaceholder(key));

  it('X10: finds a secret as it is, URL-encoded, in JSON, and in base64 at any place', () => {
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (key, before, behind) => {
        const { answer, error } = createRedactor([key]);
        const clean = key.length < 16 ? error : answer;
        const encoded = Buffer.from(before + key + behind);
        for (const text of [
          before + key + behind,
          before + encodeURIComponent(key) + behind,
          JSON.stringify(before + key + behind),
          JSON.stringify(before + key + behind).replaceAll('/', '\\/'),
          encoded.toString('base64'),
          encoded.toString('base64url'),
        ]) {
          expect(clean(text)).toContain('[redacted]');
        }
      }),
    );
  });

  it('leaves everything else, and secrets that are ordinary words', () => {
    const { error: clean } = createRedactor(['abc', '', 'sk-123456']);
    expect(clean('abc def sk-12345')).toBe('abc def sk-12345');
    expect(clean('sk-123456, sk-123456')).toBe('[redacted], [redacted]');
  });

  it('X10: learns a secret that comes later', () => {
    const secrets = ['sk-123456'];
    const { error: clean } = createRedactor(secrets);
    expect(clean('sk-123456 sk-abcdef')).toBe('[redacted] sk-abcdef');
    secrets.push('sk-abcdef');
    expect(clean('sk-123456 sk-abcdef')).toBe('[redacted] [redacted]');
  });

  it.each([
    ['ollama', 'Run `ollama pull` first.'],
    ['choices', 'Take one of the choices.'],
    ['EMPTY', 'EMPTY'],
    ['lm-studio', 'Start lm-studio.'],
    ['not-needed', 'It is not-needed.'],
    ['sk-no-key-required', 'sk-no-key-required'],
    ['YOUR_API_KEY', 'Set YOUR_API_KEY.'],
    ['your-api-key-here', 'Put your-api-key-here.'],
    ['sk-xxxxxxxxxxxxxxxx', 'sk-xxxxxxxxxxxxxxxx'],
  ])('leaves the placeholder %s everywhere', (key, text) => {
    const { answer, error } = createRedactor([key]);
    expect(answer(text)).toBe(text);
    expect(error(text)).toBe(text);
  });

  it.each([
    ['sk-123456', true],
    ['t0ken-of-team', true],
    ['gsk_aBcDeFgHiJkLmNoPqRsT', true],
    ['correct-horse-battery-staple', true],
    ['8f14e45fceea167a5a36dedd4bea2543', true],
    ['local-dev-secret', true],
    ['changeable', false],
    ['20261122', false],
    ['a1b2c3', false],
  ])('X10: takes %s out of errors, and out of answers: %s', (key, alsoOfAnswers) => {
    const { answer, error } = createRedactor([key]);
    expect(error(`(${key})`)).toBe('([redacted])');
    expect(answer(`(${key})`)).toBe(alsoOfAnswers ? '([redacted])' : `(${key})`);
  });

  it('takes the longer of two secrets out whole', () => {
    const { error: clean } = createRedactor(['s3cret', 's3cret-and-more']);
    expect(clean('s3cret-and-more')).toBe('[redacted]');
  });
});
