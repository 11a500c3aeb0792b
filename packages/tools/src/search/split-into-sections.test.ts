import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { splitIntoSections } from './split-into-sections.js';

const split = (text: string): unknown[] =>
  splitIntoSections({ path: 'a.md', text }).map(({ headings, line, text: body }) => [
    headings,
    line,
    body,
  ]);

describe('splitIntoSections', () => {
  it('splits at headings, and keeps those above', () => {
    expect(split('before\n# A\none\n## B\ntwo\n### C\nthree\n## D ##\nfour\n# E\nfive')).toEqual([
      [[], 1, 'before'],
      [['A'], 2, 'one'],
      [['A', 'B'], 4, 'two'],
      [['A', 'B', 'C'], 6, 'three'],
      [['A', 'D'], 8, 'four'],
      [['E'], 10, 'five'],
    ]);
  });

  it('takes no comment in a code block for a heading', () => {
    expect(split('# A\n```sh\n# no heading\n```\n~~~~\n# nor this\n~~~\n~~~~\n# B\nb')).toEqual([
      [['A'], 1, '```sh\n# no heading\n```\n~~~~\n# nor this\n~~~\n~~~~'],
      [['B'], 9, 'b'],
    ]);
  });

  it('writes headings without marks', () => {
    expect(split('# The `tool` and [its *docs*](https://example.com)\nx')).toEqual([
      [['The tool and its docs'], 1, 'x'],
    ]);
  });

  it('reads any ends of lines, and a byte order mark', () => {
    expect(split('\uFEFF# A\r\none\r\n')).toEqual([[['A'], 1, 'one']]);
    expect(split('#hashtag\n####### seven\n    # code')).toEqual([
      [[], 1, '#hashtag\n####### seven\n    # code'],
    ]);
  });

  it('cuts what is long at blank lines', () => {
    const paragraph = 'word '.repeat(200).trim();
    const sections = split(['# A', paragraph, '', paragraph, '', paragraph].join('\n'));
    expect(sections).toEqual([
      [['A'], 1, `${paragraph}\n\n${paragraph}`],
      [['A'], 5, paragraph],
    ]);
  });

  it('loses no word of any text', () => {
    const lines = fc.constantFrom(
      '# A',
      '## B',
      'some text',
      '',
      '```',
      '~~~',
      '    # code',
      'x'.repeat(700),
    );
    fc.assert(
      fc.property(fc.array(lines, { maxLength: 40 }), (given) => {
        const sections = splitIntoSections({ path: 'a.md', text: given.join('\n') });
        const kept = sections.map(({ text }) => text).join('\n');
        const count = (text: string, word: string): number => text.split(word).length;
        for (const word of ['some text', 'x'.repeat(700), '```', '# code']) {
          expect(count(kept, word)).toBe(count(given.join('\n'), word));
        }
      }),
    );
  });
});
