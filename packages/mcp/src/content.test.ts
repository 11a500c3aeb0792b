import { describe, expect, it } from '@jest/globals';
import { textOf } from '@millrace/core';
import { outputOf } from './content.js';

describe('X32: an integer in the structured content of a server', () => {
  const shown = (structuredContent: Record<string, unknown>, text?: string): string =>
    textOf(
      outputOf(
        { content: text === undefined ? [] : [{ type: 'text', text }], structuredContent },
        1_000,
      ),
    );

  it('may be rounded, which the model learns if there is no other content', () => {
    const rounded: unknown = JSON.parse('{"list":[{"id":9007199254740993}]}');
    const content = { rounded };
    expect(shown(content)).toContain('may be rounded');
    expect(shown(content, '{"id":9007199254740993}')).toBe('{"id":9007199254740993}');
    expect(shown({ id: 9_007_199_254_740_991, share: 0.5 })).not.toContain('rounded');
  });
});
