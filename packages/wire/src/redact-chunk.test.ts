import { describe, expect, it } from '@jest/globals';
import { redactChunk } from './redact-chunk.js';

const secret = 'sk-1/2+3456';
const clean = (text: string): string => text.replaceAll(secret, '[redacted]');

const toolCall = (json: string) => ({ type: 'toolCall', input: JSON.parse(json) as unknown });

describe('cleanChunk', () => {
  it.each(['text', 'thinking', 'any'])('X10: takes a secret out of a piece of %s', (type) => {
    expect(redactChunk({ type, text: `It is ${secret}.` }, clean)).toEqual({
      type,
      text: 'It is [redacted].',
    });
  });

  it.each([
    ['as it is', `"${secret}"`],
    ['with a slash escaped', '"sk-1\\/2+3456"'],
    ['with escapes that nobody needs', '"\\u0073k-1/2\\u002B3456"'],
  ])('X10: finds a secret in any part of a piece, written %s', (_, text) => {
    expect(redactChunk(toolCall(`{"a":[{"b":${text}}]}`), clean).input).toEqual({
      a: [{ b: '[redacted]' }],
    });
    expect(redactChunk(toolCall(text), clean).input).toBe('[redacted]');
    expect(redactChunk(toolCall(`{${text}:{"b":${text}}}`), clean).input).toEqual({
      '[redacted]': { b: '[redacted]' },
    });
  });

  it('leaves a piece that holds none as it is, and what is shared between answers', () => {
    const piece = Object.freeze({ type: 'text', text: 'Hello' });
    expect(redactChunk(piece, clean)).toBe(piece);
    const shared = Object.freeze({ type: 'text', text: secret });
    expect(redactChunk(shared, clean)).toEqual({ type: 'text', text: '[redacted]' });
  });

  it('X10: throws rather than show what cannot be cleaned', () => {
    const input = Object.freeze({ key: secret });
    expect(() => redactChunk({ type: 'toolCall', input }, clean)).toThrow(TypeError);
  });

  it('X15: keeps a name like any other', () => {
    const { input } = redactChunk(toolCall(`{"__proto__":{"polluted":"${secret}"}}`), clean);
    expect(JSON.stringify(input)).toBe('{"__proto__":{"polluted":"[redacted]"}}');
    expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
  });

  it('X6: takes any depth', () => {
    const deep = toolCall(`${'['.repeat(100_000)}"a"${']'.repeat(100_000)}`);
    expect(Array.isArray(redactChunk(deep, clean).input)).toBe(true);
  });
});
