import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, from, lastValueFrom, reduce, throwError, toArray } from 'rxjs';
import { marbles } from 'millrace/testing';
import { columnsOf, piecesOf } from './columns.js';
import { wrapLines, wrapText } from './wrap.js';

describe('wrapText', () => {
  it.each([
    ['breaks between words', 'one two three four', 'one two\nthree four'],
    ['keeps line breaks and spaces', 'one  two\n\n three', 'one  two\n\n three'],
    ['keeps the indentation', '  one two three', '  one two\n  three'],
    ['does not split a long word', 'see https://example.com/a', 'see\nhttps://example.com/a'],
    [
      'keeps code',
      '```\na long line of code\n```\na line of text',
      '```\na long line of code\n```\na line of\ntext',
    ],
    ['keeps tables', '| a table | of Markdown |', '| a table | of Markdown |'],
    ['counts no colours', '\u001b[2mone two\u001b[22m three', '\u001b[2mone two\u001b[22m\nthree'],
    ['counts two columns for a wide character', '日本語の文章です', '日本語の文\n章です'],
    ['counts an emoji once, with what joins it', '👩‍💻 is here', '👩‍💻 is here'],
  ])('%s', (_what, text, wrapped) => {
    expect(wrapText(text, 10)).toBe(wrapped);
  });
});

/** Text of words, spaces, line breaks and wide characters. */
const texts = fc
  .array(
    fc.constantFrom('a', 'word', 'a-longer-word', ' ', '  ', '\n', '漢', '\u001b[1m', '|', '```'),
    {
      maxLength: 60,
    },
  )
  .map((parts) => parts.join(''));
const widths = fc.integer({ min: 4, max: 40 });
const withoutSpace = (text: string) => text.replaceAll(/\s/g, '');
const withoutColours = (text: string) =>
  piecesOf(text)
    .filter((part) => !part.startsWith('\u001b'))
    .join('');

describe('wrapLines', () => {
  it('changes nothing but space, in any pieces', async () => {
    await fc.assert(
      fc.asyncProperty(texts, widths, fc.array(fc.nat(12)), async (text, width, cuts) => {
        const pieces = cuts.reduce<readonly string[]>(
          ([rest = '', ...done], cut) => [rest.slice(cut), ...done, rest.slice(0, cut)],
          [text],
        );
        const [rest = '', ...first] = pieces;
        const wrapped = await lastValueFrom(
          from([...first, rest]).pipe(
            wrapLines(width),
            reduce((all, more) => all + more, ''),
          ),
        );
        expect(wrapped).toBe(wrapText(text, width));
        expect(withoutSpace(wrapped)).toBe(withoutSpace(text));
      }),
    );
  });

  it('breaks no line that fits, and leaves none that does not', () => {
    const plain = texts.map((text) => text.replaceAll(/[|`]/g, ''));
    fc.assert(
      fc.property(plain, widths, (text, width) => {
        for (const line of wrapText(text, width).split('\n')) {
          const words = withoutColours(line).trim().split(/\s+/);
          if (words.length > 1) expect(columnsOf(line.trimEnd())).toBeLessThanOrEqual(width);
        }
        for (const line of text.split('\n')) {
          if (columnsOf(line) <= width) expect(wrapText(line, width)).toBe(line);
        }
      }),
      { examples: [['\u001b[1m a-longer-word', 4]] },
    );
  });

  it('emits a word when it is complete, and the last one at the end or before an error', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const values = { a: 'on', b: 'e two', c: 'one', d: ' two' };
      const whole = cold('a-b-|', values);
      expectObservable(whole.pipe(wrapLines(20))).toBe('--c-(d|)', values);
      expectSubscriptions(whole.subscriptions).toBe('^---!');
      const failing = cold('a-b-#', values);
      expectObservable(failing.pipe(wrapLines(20))).toBe('--c-(d#)', values);
      const left = cold('a-b--', values);
      expectObservable(left.pipe(wrapLines(20)), '^--!').toBe('--c-', values);
      expectSubscriptions(left.subscriptions).toBe('^--!');
    });
  });

  it('starts over for each subscriber', async () => {
    const wrapped$ = concat(from(['one'])).pipe(wrapLines(20), toArray());
    expect(await lastValueFrom(wrapped$)).toEqual(await lastValueFrom(wrapped$));
    const failed$ = throwError(() => new Error('lost')).pipe(wrapLines(20));
    await expect(lastValueFrom(failed$)).rejects.toThrow('lost');
  });
});
