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

  it('takes code within a line for no code block', () => {
    expect(split('# A\n```npm install```\n# B\nb').map((it) => (it as unknown[])[0])).toEqual([
      ['A'],
      ['B'],
    ]);
  });

  it('writes headings without marks', () => {
    expect(split('# The `tool` and [its *docs*](https://example.com)\nx')).toEqual([
      [['The tool and its docs'], 1, 'x'],
    ]);
  });

  it('reads any ends of lines, and a byte order mark', () => {
    expect(split('\uFEFF# A\r\none\r\n')).toEqual([[['A'], 1, 'one']]);
    expect(split('# A\u2028B\none')).toEqual([[['A\u2028B'], 1, 'one']]);
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

  it('R7: knows where each section stands in its document', () => {
    const text = '\uFEFFbefore\r\n# A\r\n\r\n  one\r\ntwo \r\n\r\n## B\r\nthree';
    const places = splitIntoSections({ path: 'a.md', text }).map(({ line, original, span }) => [
      line,
      original,
      span,
    ]);
    expect(places).toEqual([
      [1, 'before', { from: 1, to: 7, line: 1 }],
      [2, 'one\r\ntwo', { from: 18, to: 26, line: 4 }],
      [7, 'three', { from: 37, to: 42, line: 8 }],
    ]);
  });

  it('R7: the span of a section is what it says, in its place, and on its line', () => {
    const lines = fc.constantFrom('# A', '## B', ' text ', '', ' ', '```', '\t# x', '😀 \u00a0');
    const ends = fc.constantFrom('\n', '\r\n', '\r', '\n\n');
    const texts = fc.array(fc.tuple(fc.oneof(lines, fc.string({ maxLength: 3 })), ends));
    const part = fc.oneof(lines, fc.constant('x '.repeat(2_000)));
    const long = fc.array(fc.tuple(part, ends), { maxLength: 10 });
    fc.assert(
      fc.property(fc.oneof(texts, long), (parts) => {
        const text = parts.flat().join('');
        const sections = splitIntoSections({ path: 'a.md', text });
        let last = 0;
        for (const { text: body, original, span } of sections) {
          expect(text.slice(span.from, span.to)).toBe(original);
          expect(original.replaceAll('\r\n', '\n')).toBe(body);
          expect(span.line).toBe(text.slice(0, span.from).split('\n').length);
          expect(span.from).toBeGreaterThanOrEqual(last);
          last = span.to;
        }
      }),
    );
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
