import { describe, expect, it } from '@jest/globals';
import { cleanJson } from './clean-json.js';

const secret = 'sk-1/2+3456';
const clean = (text: string): string => text.replaceAll(secret, '[redacted]');

describe('cleanJson', () => {
  it.each([
    ['as it is', `"${secret}"`],
    ['with a slash escaped', '"sk-1\\/2+3456"'],
    ['with escapes that nobody needs', '"\\u0073k-1/2\\u002B3456"'],
  ])('X10: finds a secret %s', (_, text) => {
    expect(cleanJson(`{"a":[{"b":${text}}]}`, clean)).toEqual({ a: [{ b: '[redacted]' }] });
    expect(cleanJson(text, clean)).toBe('[redacted]');
    expect(cleanJson(`{${text}:{"b":${text}}}`, clean)).toEqual({
      '[redacted]': { b: '[redacted]' },
    });
  });

  it('X10: breaks no JSON, whatever the secret', () => {
    const quoting = (text: string): string => text.replaceAll('","', '[redacted]');
    expect(cleanJson('["a","b"]', quoting)).toEqual(['a', 'b']);
  });

  it('X15: keeps a name like any other', () => {
    const value = cleanJson(`{"__proto__":{"polluted":"\\u0061 ${secret}"}}`, clean);
    expect(JSON.stringify(value)).toBe('{"__proto__":{"polluted":"a [redacted]"}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it('X6: takes any depth', () => {
    const deep = `${'['.repeat(100_000)}"\\u0061"${']'.repeat(100_000)}`;
    expect(Array.isArray(cleanJson(deep, clean))).toBe(true);
  });

  it('gives undefined for what is no JSON', () => {
    expect(cleanJson('{', clean)).toBeUndefined();
  });
});
