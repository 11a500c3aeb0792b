import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { filter, from, take, takeWhile } from 'rxjs';
import { type ContentChunk, stopMessage } from '../../models/chunk-transform.js';
import { marbles } from '../../testing/index.js';
import { type Patterns, readPatterns } from './patterns.js';
import { stopAtMatch, textChunk } from './guard-output.js';
import { cutAt, isWellFormed } from './text-window.test-support.js';

const window = 8;

const stopping = (patterns: Patterns, feedback?: string) =>
  stopAtMatch({ patterns: readPatterns('it', patterns), window, feedback });

const verdictOf = (patterns: Patterns, pieces: readonly string[]): readonly [string, boolean] => {
  const shown: string[] = [];
  let isStopped = false;
  from(pieces.flatMap((it) => textChunk(it)))
    .pipe(
      stopping(patterns),
      takeWhile(({ type }) => type !== 'stop', true),
    )
    .subscribe((chunk) => {
      if (chunk.type === 'text') shown.push(chunk.text);
      isStopped ||= chunk.type === 'stop';
    });
  return [shown.join(''), isStopped];
};

/** The chunks of a text, one a letter, named `a`, `b`, `c` and so on. */
const lettersOf = (said: string): Readonly<Record<string, ContentChunk>> =>
  Object.fromEntries(
    Array.from(said, (letter, index) => [
      String.fromCharCode(97 + index),
      { type: 'text', text: letter },
    ]),
  );

describe('stopAtMatch', () => {
  it.each<[Patterns, readonly string[]]>([
    [/\bass\b/, ['I ass', 'ume so']],
    [/foo(?!bar)/, ['a foo', 'bar']],
    [/foo(?!bar)/, ['a foob', 'ar']],
    [/ab$/, ['ab', 'c']],
    [/^foo/, ['A long text before ', 'foo']],
    [/^foo/, Array.from(`xfoo${'y'.repeat(60)}`)],
    [/(?<=\p{Surrogate}.*)a/su, Array.from(`😀${'a'.repeat(60)}`)],
    [/\ud83d(?!\ude00)/, ['a \ud83d', '\ude00']],
    [/[\ud83d]/u, ['a \ud83d', '\ude00']],
  ])('H7: %s takes nothing that more text makes harmless for a match (%#)', (pattern, pieces) => {
    expect(verdictOf(pattern, pieces)).toEqual([pieces.join(''), false]);
  });

  it('H7: stops the same texts at the same place, however they come in pieces', () => {
    const patterns = [
      'swordfish'.slice(0, window),
      /\bass\b/,
      /foo(?!bar)/,
      /ab$/,
      /^foo/,
      /a$/m,
      /s+b/,
      /(?=foo)/,
      /(?<=as)s/,
      /oo|b(?=a)/,
      /\Bo\B/,
      /\ude00/,
      /\$b/,
    ];
    const pieces = fc.array(
      fc.constantFrom('a', 's', 'b', 'foo', 'bar', 'ass', 'sword', 'fish', ' ', '\n', '$', '😀'),
      { maxLength: 24 },
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...patterns),
        pieces,
        fc.array(fc.nat(5)),
        (pattern, words, sizes) => {
          const whole = words.join('');
          const [regExp] = readPatterns('it', pattern);
          const start = whole.search(regExp ?? /$/);
          const isEmoji = whole.codePointAt(start - 1) === 0x1f600;
          const shown = start < 0 ? whole : whole.slice(0, isEmoji ? start - 1 : start);
          fc.pre(!/s{7}/.test(whole));
          expect(verdictOf(pattern, cutAt(whole, sizes))).toEqual([shown, start >= 0]);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('H7: several patterns stop the same texts at the same place, however they come in pieces', () => {
    const patterns = fc.subarray(
      [/abcdef/, 'cd', /\bb/, /b(?!c)/, /c+\b/, /e$/, /(?<=ab)c/, /d.?e|ef/s],
      { minLength: 1 },
    );
    const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', ' ', 'abc'), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(patterns, words, fc.array(fc.nat(5)), (some, parts, sizes) => {
        const whole = parts.join('');
        fc.pre(!/c{7}/.test(whole));
        expect(verdictOf(some, cutAt(whole, sizes))).toEqual(verdictOf(some, [whole]));
      }),
      { numRuns: 1_000 },
    );
  });

  it.each<[Patterns, number]>([
    ['bad', 7],
    [/ba+d/, 7],
    [/\bbad\b/, 8],
    [/bad(?=,)/, 5 + window],
    [/not\?$/, 19],
  ])('H7: stops for %s as soon as no more text can undo it', (pattern, frame) => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const said = 'I am bad, am I not?';
      const source = cold('abcdefghijklmnopqrs|', lettersOf(said));
      const stopped$ = source.pipe(
        stopping(pattern, 'No.'),
        filter(({ type }) => type === 'stop'),
        take(1),
      );
      const wait = '-'.repeat(frame);
      expectObservable(stopped$).toBe(`${wait}(s|)`, { s: stopMessage('No.') });
      expectSubscriptions(source.subscriptions).toBe(`^${wait.slice(1)}!`);
    });
  });

  it('H7: a match that ends first takes precedence over one that begins first, in one piece as in many', () => {
    expect(verdictOf(/bcdef|cd/, Array.from('abcdef'))).toEqual(['ab', true]);
    expect(verdictOf(/bcdef|cd/, ['abcdef'])).toEqual(['ab', true]);
  });

  it('H7: shows nothing that may be a match when another one stops the message', () => {
    expect(verdictOf([/a(?!bc)/, 'd'], ['xa', 'yd'])).toEqual(['x', true]);
  });

  it('H7: stops before a match that is longer than the window, once it would have to show it', () => {
    const letters = Array.from(`x ${'a'.repeat(30)}`);
    expect(verdictOf(/\ba+\b/, letters)).toEqual(['x ', true]);
  });

  it('H7: cuts no character in two', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '😀', '👍🏽') }),
        fc.array(fc.nat(3)),
        fc.constantFrom<Patterns>(/\ude00a/, /aaa/, /(?=\udc4d)/),
        (whole, sizes, pattern) => {
          const shown: string[] = [];
          from(cutAt(whole, sizes).flatMap((it) => textChunk(it)))
            .pipe(
              stopping(pattern),
              takeWhile(({ type }) => type !== 'stop'),
            )
            .subscribe((chunk) => {
              if (chunk.type === 'text') shown.push(chunk.text);
            });
          expect(shown.filter((it) => !isWellFormed(it))).toEqual([]);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('takes what is no text for the end of the text', () => {
    const thought: ContentChunk = { type: 'thinking', text: 'Hm.' };
    const shown: unknown[] = [];
    from([...textChunk('ab'), thought, ...textChunk('c')])
      .pipe(stopping(/ab$/))
      .subscribe((chunk) => shown.push(chunk.type));
    expect(shown).toEqual(['stop', 'thinking', 'text']);
  });

  it('X6: 100,000 deltas, and one of 100,000 characters, take linear time', () => {
    const harmless = 'x '.repeat(50_000);
    const patterns = ['bad', /\bbad\b/, /bad(?!ly)/];
    expect(verdictOf(patterns, Array.from(harmless))).toEqual([harmless, false]);
    expect(verdictOf(patterns, [`${harmless}bad${harmless}`])).toEqual([harmless, true]);
  });
});
