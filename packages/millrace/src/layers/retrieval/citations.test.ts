import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { citationsIn } from './citations.js';
import type { RetrievedPassage } from './passages.js';

const passages: readonly RetrievedPassage[] = ['one', 'two', 'three'].map((text) => ({
  source: `${text}.md`,
  text,
}));

/** The numbers that a text cites, in their order, and those that nothing has. */
const read = (text: string): string => {
  const { cited, unknown } = citationsIn(text, passages);
  const numbers = [cited, unknown].map((list) => list.map(({ number }) => number).join());
  return numbers.join('|').replace(/\|$/u, '');
};

describe('citationsIn', () => {
  it('R7: gives the passages in the order of first citation, with the places of the marks', () => {
    const text = 'It turns [3]. It stops [1, 3].';
    const { cited, unknown } = citationsIn(text, passages);
    expect(cited).toEqual([
      {
        number: 3,
        passage: passages[2],
        spans: [
          { from: 9, to: 12 },
          { from: 23, to: 29 },
        ],
      },
      { number: 1, passage: passages[0], spans: [{ from: 23, to: 29 }] },
    ]);
    expect(unknown).toEqual([]);
  });

  it.each([
    ['none', ''],
    ['[1]', '1'],
    ['[2][1]', '2,1'],
    ['[ 1,2 ,3 ]', '1,2,3'],
    ['[1, 1]', '1'],
    ['(see [1])', '1'],
    ['[see [1], below]', '1'],
    ['**[1]**', '1'],
    ['blue[1].', '1'],
    ['[1] (p. 3)', '1'],
    ['[1](as the manual says)', '1'],
    ['[1](unclosed', '1'],
    ['| a | [1] |', '1'],
    ['> [1]', '1'],
    ['😀 [1]', '1'],
    ['[4] [0] [2024] [1]', '1|4,0,2024'],
    ['[999999999999999999999]', ''],
    ['[01] [+1] [1.0] [1e0] [-1] [] [,] [1,] [a] [１]', ''],
    ['\\[1]', ''],
    ['[__proto__] [constructor] [length]', ''],
  ])('R7: reads %j as %j', (text, numbers) => {
    expect(read(text)).toBe(numbers);
  });

  it.each([
    ['```\n[1]\n```\n[2]', '2'],
    ['```ts\na[1]', ''],
    ['~~~\n[1]\n```\n[1]\n~~~\n[2]', '2'],
    ['````\n```\n[1]\n````\n[2]', '2'],
    ['```\n```ts\n[1]\n```\n[2]', '2'],
    ['- ```\n  [1]\n  ```\n  [2]', '2'],
    ['> ```\n> [1]\n> ```\n> [2]', '2'],
    ['```\r\n[1]\r\n```\r\n[2]', '2'],
    ['``` [1] ``` [2]', '2'],
    ['`a[1]` [2]', '2'],
    ['``a`[1]`` [2]', '2'],
    ['a ` b [1]', '1'],
    ['a ` b\n\n[1] ` c', '1'],
    ['`a\n[1]` [2]', '2'],
  ])('R7: passes over code: %j is %j', (text, numbers) => {
    expect(read(text)).toBe(numbers);
  });

  it.each([
    ['[1](docs/a.md) [2]', '2'],
    ['[1](docs/a.md "A (b)") [2]', '2'],
    ["[1](<docs/a b.md> 'A') [2]", '2'],
    ['[1](a_(b)_c) [2]', '2'],
    ['[see [1]](a) [2]', '2'],
    ['[a](b/[1]) [2]', '2'],
    ['[a](b[1](c)) [2]', '2'],
    ['![1](a.png) [2]', '2'],
    ['[![1](a.png)](b) [2]', '2'],
    ['[1]() [2]', '2'],
    ['[1]: docs/a.md\n[2]', '2'],
    ['[1]: The gate closes.', '1'],
    ['a [ b\n\n[1] c](d)', '1'],
    ['] [1] ](a)', '1'],
  ])('R7: passes over links: %j is %j', (text, numbers) => {
    expect(read(text)).toBe(numbers);
  });

  it('R7: the places are those of the marks, no matter what stands around them', () => {
    const part = fc.oneof(
      fc.constantFrom('[1]', '[2, 3]', '[9]', '`', '```\n', '\n\n', '[', '](', ')', '😀', '\\'),
      fc.string({ unit: 'binary', maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const text = parts.join('');
        const { cited, unknown } = citationsIn(text, passages);
        for (const { number, spans } of [...cited, ...unknown]) {
          for (const { from, to } of spans) {
            const written = text.slice(from, to);
            expect(written).toMatch(/^\[[\d, \t]+\]$/u);
            expect(written.match(/\d+/gu)?.map(Number)).toContain(number);
          }
        }
        const firsts = cited.map(({ spans }) => spans[0]?.from ?? -1);
        expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
      }),
    );
  });

  it('R7: finds what plain prose cites, and nothing else', () => {
    const numbers = fc.integer({ min: 1, max: 3 });
    fc.assert(
      fc.property(fc.array(numbers, { maxLength: 20 }), (cited) => {
        const text = cited.map((number) => `It is so [${number}].`).join(' ');
        expect(read(text)).toBe([...new Set(cited)].join());
      }),
    );
  });

  it.each([
    '[1',
    '[1](',
    '[1](a "',
    '[1](a(b)',
    '[1](<',
    '`',
    '` `` ',
    '[',
    ']',
    '[1](   ',
    '[1, ',
    '~~~\n',
    '\n ',
    '[1]: ',
    '> - ',
  ])('X6: takes time in proportion to the length of %j, repeated', (piece) => {
    const longest = 200_000;
    expect(isQuick(1_000, () => read(piece.repeat(longest / piece.length)))).toBe(true);
    expect(isQuick(1_000, () => read(`[1](${piece.at(-1)?.repeat(longest)}`))).toBe(true);
  });
});

/** Whether something takes less than so much of the processor, of three tries the best. */
const isQuick = (milliseconds: number, run: () => unknown): boolean =>
  [1, 2, 3].some(() => {
    const usage = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(usage);
    return (user + system) / 1_000 < milliseconds;
  });
