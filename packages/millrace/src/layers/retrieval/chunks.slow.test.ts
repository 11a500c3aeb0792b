import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { byHeadings, bySize, chunked, type Chunker, type TextDocument } from './chunks.js';

const textsOf = (document: TextDocument, chunker?: Chunker) =>
  chunked(document, chunker).chunks.map(({ from, to, line, title, source }) => ({
    text: document.text.slice(from, to),
    line,
    ...(title === undefined ? {} : { title }),
    ...(source === undefined ? {} : { source }),
  }));

const doc = (text: string, more: Partial<TextDocument> = {}): TextDocument => ({
  source: 'a.md',
  text,
  ...more,
});

describe('byHeadings', () => {
  it('splits at headings, which become the title', () => {
    const text =
      'Intro.\r\n\r\n# Mill #\r\n\r\n## `Race` [link](x)\r\nA *race*.\r\n\r\n# Other\r\n\r\nEnd.\r\n';
    expect(textsOf(doc(text, { title: 'Doc' }))).toEqual([
      { text: 'Intro.', line: 1, title: 'Doc' },
      { text: 'A *race*.', line: 6, title: 'Doc › Mill › Race link' },
      { text: 'End.', line: 10, title: 'Doc › Other' },
    ]);
  });

  it('splits at a heading with a line separator, which ends no line', () => {
    expect(textsOf(doc('# A\na\n# B\u2028C\nb')).map(({ title }) => title)).toEqual([
      'A',
      'B\u2028C',
    ]);
  });

  it('takes no comment of a code block for a heading', () => {
    const text = '# A\n```sh\n# not one\n```\n~~~\n# nor this\n```\n# still not\n~~~\n# B\nb';
    expect(textsOf(doc(text)).map(({ title }) => title)).toEqual(['A', 'B']);
  });

  it('reads a heading after a byte order mark', () => {
    expect(textsOf(doc('\uFEFF# A\na'))).toEqual([{ text: 'a', line: 2, title: 'A' }]);
  });

  it('takes code in a line for no code block', () => {
    const text = '# A\n```npm install```\n# B\n````\n# not one\n````\n# C\nc';
    expect(textsOf(doc(text)).map(({ title }) => title)).toEqual(['A', 'B', 'C']);
  });

  it('does not repeat a title that is the first heading', () => {
    expect(textsOf(doc('# Mill\nx', { title: 'Mill' }))).toEqual([
      { text: 'x', line: 2, title: 'Mill' },
    ]);
  });

  it('cites the page, and does not mix pages', () => {
    const pages = ['First page.\n', '\n', 'Third.\n'];
    const text = pages.join('');
    const starts = [0, 12, 13];
    expect(textsOf({ source: 'm.pdf', text, pages: starts })).toEqual([
      { text: 'First page.', line: 1, source: 'm.pdf#page=1' },
      { text: 'Third.', line: 3, source: 'm.pdf#page=3' },
    ]);
  });

  it('splits long sections at a paragraph, else a line, else a word, else anywhere', () => {
    const long = (end: string): string => `${'x'.repeat(60)}${end}${'y'.repeat(60)}`;
    const cut = (text: string): readonly number[] =>
      textsOf(doc(text), byHeadings({ maxLength: 100 })).map((it) => it.text.length);
    for (const end of ['\n\n', '\n', ' ']) expect(cut(long(end))).toEqual([60, 60]);
    expect(cut(long(''))).toEqual([100, 20]);
    // A character outside the basic plane has two units.
    expect(cut(`${'x'.repeat(99)}🍵${'y'.repeat(50)}`)).toEqual([99, 52]);
  });

  it('has linear cost for huge lines, headings and white space', () => {
    for (const text of [
      'x'.repeat(1e6),
      `# ${'a '.repeat(5e5)}`,
      ' '.repeat(1e6),
      '# '.repeat(5e5),
      '\n'.repeat(1e6),
      '[('.repeat(5e5),
    ]) {
      expect(chunked(doc(text)).chunks.length).toBeLessThan(4_000);
    }
  });
});

describe('chunked', () => {
  const chunkers: fc.Arbitrary<Chunker> = fc.oneof(
    fc.integer({ min: 100, max: 300 }).map((maxLength) => byHeadings({ maxLength })),
    fc
      .record({
        maxLength: fc.integer({ min: 100, max: 300 }),
        overlap: fc.integer({ min: 0, max: 50 }),
      })
      .map(bySize),
  );
  const part = fc.oneof(
    fc.constantFrom(
      '# Heading\n',
      '\n\n',
      '```\n',
      '  ',
      '\u0000',
      '\ud800',
      '🍵🍵',
      'word '.repeat(40),
      'x'.repeat(250),
    ),
    fc.string({ unit: 'binary', maxLength: 60 }),
  );
  const texts = fc.array(part, { maxLength: 20 }).map((parts) => parts.join(''));

  it('cites exact text: all of it but white space and headings, within the limit, in order, with its line', () => {
    fc.assert(
      fc.property(texts, chunkers, (text, chunker) => {
        const { chunks } = chunked(doc(text), chunker);
        let covered = 0;
        const uncovered: string[] = [];
        for (const { from, to, line } of chunks) {
          expect(to - from).toBeLessThanOrEqual(300);
          expect(text.slice(from, to).trim()).toBe(text.slice(from, to));
          expect(line).toBe(text.slice(0, from).split('\n').length);
          // No pair is torn.
          for (const at of [from, to]) {
            expect(
              /[\ud800-\udbff]$/.test(text.slice(0, at)) && /^[\udc00-\udfff]/.test(text.slice(at)),
            ).toBe(false);
          }
          uncovered.push(text.slice(covered, from));
          covered = Math.max(covered, to);
        }
        uncovered.push(text.slice(covered));
        const missing = uncovered
          .join('')
          .split('\n')
          .filter((it) => !/^ {0,3}#{1,6}[ \t]/.test(it));
        expect(missing.join('').trim()).toBe('');
      }),
    );
  });

  it('repeats the overlap', () => {
    const text = Array.from({ length: 100 }, (_, at) => `word${at}`).join(' ');
    const { chunks } = chunked(doc(text), bySize({ maxLength: 200, overlap: 50 }));
    expect(chunks.length).toBeGreaterThan(3);
    for (const [at, { from }] of chunks.slice(1).entries()) {
      const overlap = (chunks[at]?.to ?? 0) - from;
      expect(overlap).toBeGreaterThan(20);
      expect(overlap).toBeLessThanOrEqual(50);
      expect(text.slice(from).startsWith('word')).toBe(true);
    }
  });

  it('tears no pair if an overlap begins', () => {
    const text = '🍵'.repeat(300);
    const { chunks } = chunked(doc(text), bySize({ maxLength: 101, overlap: 33 }));
    expect(chunks.length).toBeGreaterThan(5);
    for (const { from, to } of chunks) expect([from % 2, to % 2]).toEqual([0, 0]);
  });

  it('takes a function, and refuses spans that are not in the text', () => {
    const words: Chunker = ({ text }) =>
      Array.from(text.matchAll(/\w+/g), ({ 0: word, index }) => ({
        from: index,
        to: index + word.length,
        title: word,
      }));
    expect(textsOf(doc('a\nbc'), (it) => words(it).toReversed())).toEqual([
      { text: 'bc', line: 2, title: 'bc' },
      { text: 'a', line: 1, title: 'a' },
    ]);
    for (const span of [
      { from: -1, to: 1 },
      { from: 0, to: 4 },
      { from: 1, to: 1 },
      { from: 0, to: 0.5 },
      { from: NaN, to: 1 },
    ]) {
      expect(() => chunked(doc('abc'), () => [span])).toThrow('The chunker returned a span');
    }
    expect(() => bySize({ maxLength: 100, overlap: 51 })).toThrow("'overlap' must be");
    expect(() => byHeadings({ maxLength: 1 })).toThrow("'maxLength' must be");
  });
});
