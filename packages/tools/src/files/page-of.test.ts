import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { pageOf } from './page-of.js';

describe('pageOf', () => {
  it('gives a short text whole', () => {
    expect(pageOf('a\nb\n')).toEqual({
      text: 'a\nb',
      fromLine: 1,
      toLine: 2,
      totalLines: 2,
      isCut: false,
    });
  });

  it('gives the lines that are asked for', () => {
    expect(pageOf('a\r\nb\r\nc', 2, 1)).toMatchObject({
      text: 'b',
      fromLine: 2,
      toLine: 2,
      totalLines: 3,
    });
  });

  it('cuts a line that is too long', () => {
    expect(pageOf(`${'x'.repeat(20_000)}\nb`)).toMatchObject({
      toLine: 1,
      totalLines: 2,
      isCut: true,
    });
  });

  it('reads text in pages that add up to it, none of them too long', () => {
    const lines = fc.array(fc.constantFrom('', 'a', 'b'.repeat(999), 'c'.repeat(7_000)), {
      minLength: 1,
    });
    fc.assert(
      fc.property(lines, (given) => {
        const text = [...given, 'end'].join('\n');
        const read: string[] = [];
        for (let line = 1; line <= given.length + 1;) {
          const page = pageOf(text, line);
          expect(page.text.length).toBeLessThanOrEqual(15_000);
          expect(page.toLine).toBeGreaterThanOrEqual(line);
          read.push(page.text);
          line = page.toLine + 1;
        }
        expect(read.join('\n')).toBe(text);
      }),
    );
  });
});
