import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, Subject } from 'rxjs';
import type { ContentChunk } from '../../models/chunk-transform.js';
import { text } from '../../testing/index.js';
import { type Patterns, readPatterns } from './patterns.js';
import { replaceMatches } from './redact.js';
import { textChunk } from './guard-output.js';
import { cutAt, isWellFormed } from './text-window.test-support.js';

const replacing = (patterns: Patterns, window: number) =>
  replaceMatches({ patterns: readPatterns('it', patterns), window, replace: () => '<>' });

const shownOf = (
  patterns: Patterns,
  window: number,
  pieces: readonly string[],
): readonly string[] => {
  const shown: string[] = [];
  from(pieces.flatMap((it) => textChunk(it)))
    .pipe(replacing(patterns, window))
    .subscribe((chunk) => {
      if (chunk.type === 'text') shown.push(chunk.text);
    });
  return shown;
};

describe('replaceMatches', () => {
  it('X10: however long matches are and however they come in pieces, each is replaced once, and nothing else', () => {
    const word = fc
      .tuple(
        fc.constantFrom('a', 'sk-a', '1111', ' 1111', 'sk-1111', '-1111', '-', ' ', '.', 'bc'),
        fc.nat(40),
      )
      .map(([part, count]) => part.repeat(count));
    fc.assert(
      fc.property(
        fc.constantFrom(
          /sk-[a-z]+/g,
          /\b\d{4}(?: \d{4})*\b/g,
          /sk(?:-\d{4})+/g,
          /\w{5}/g,
          /(?<!b)c|a+b?/g,
        ),
        fc.array(word, { maxLength: 8 }),
        fc.array(fc.nat(12)),
        fc.integer({ min: 8, max: 20 }),
        (pattern, words, sizes, window) => {
          const whole = words.join('');
          const shown = shownOf(pattern, window, cutAt(whole, sizes)).join('');
          expect(shown).toBe(whole.replace(pattern, '<>'));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('X10: a match of 700 characters is gone, char by char and as a whole', () => {
    const long = `My sk-${'abcdefg'.repeat(100)}, ok`;
    expect(shownOf(/sk-[a-z]+/, 128, Array.from(long)).join('')).toBe('My <>, ok');
    expect(shownOf(/sk-[a-z]+/, 128, [long]).join('')).toBe('My <>, ok');
  });

  it('X10: gives up a match that goes round in no loop', () => {
    const long = 'x'.repeat(50);
    expect(shownOf(/x{40,}/, 8, [long]).join('')).toMatch(/^<>x{8}$/);
  });

  it('X6: a match without end holds back nothing for ever', () => {
    const model = new Subject<ContentChunk>();
    const shown: unknown[] = [];
    model.pipe(replacing(/x+/, 4)).subscribe((chunk) => shown.push(chunk));
    Array.from('x'.repeat(30)).forEach((it) => {
      textChunk(it).forEach((chunk) => {
        model.next(chunk);
      });
    });
    expect(shown).toEqual([text('<>')]);
    model.next({ type: 'text', text: 'xx, and on' });
    expect(shown).toEqual([text('<>'), text(', an')]);
  });

  it('X10: cuts no character in two', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '😀', '👍🏽') }),
        fc.array(fc.nat(3)),
        fc.constantFrom(/\ude00a/, /a./, /\ude00+/, /(?:😀)+/u, /aaa/),
        fc.integer({ min: 1, max: 8 }),
        (whole, sizes, pattern, window) => {
          const shown = shownOf(pattern, window, cutAt(whole, sizes));
          expect(shown.filter((it) => !isWellFormed(it))).toEqual([]);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('X6: matches without end take linear time', () => {
    const letters = Array.from('x'.repeat(30_000));
    expect(shownOf([/x+/, /(?:xxxxx)+/], 16, letters)).toEqual(['<>']);
  });
});
