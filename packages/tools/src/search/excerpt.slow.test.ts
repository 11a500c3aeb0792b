import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isQuick } from '../is-quick.test-support.js';
import { excerptOf, snippetOf } from './excerpt.js';

const filler = 'lorem ipsum dolor sit amet '.repeat(60);

describe('excerptOf', () => {
  it('R7: is the whole text if that is short', () => {
    expect(excerptOf(' gate ', new Set(['gate']), 6)).toEqual({ from: 0, to: 6 });
  });

  it('R7: holds the most terms, at ends of words', () => {
    const text = `${filler}the gate ${filler}the gates of a wheel turn ${filler}`;
    const { from, to } = excerptOf(text, new Set(['gate', 'wheel']), 300);
    expect(text.slice(from, to)).toContain('the gates of a wheel turn');
    expect(text.slice(from - 1, from)).toBe(' ');
    expect(text.slice(to, to + 1)).toBe(' ');
  });

  it('R7: takes the first of windows that are as good', () => {
    const text = `${filler}one gate ${filler}another gate, and the gate ${filler}`;
    const { from, to } = excerptOf(text, new Set(['gate']), 200);
    expect(text.slice(from, to)).toContain('one gate');
  });

  it('R7: counts the different terms of one window, and not those before it', () => {
    const text = `${filler}gate ${filler}wheel ${filler}gate wheel ${filler}`;
    const { from, to } = excerptOf(text, new Set(['gate', 'wheel']), 300);
    expect(text.slice(from, to)).toContain('gate wheel');
  });

  it('R7: is within the text, not too long, and holds a term that occurs', () => {
    const words = fc.constantFrom(
      'gate',
      'gates',
      'a',
      '\n',
      '   ',
      '😀😀😀',
      'x'.repeat(90),
      '. ',
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 80 }), (parts) => {
        const text = parts.join(' ').trim();
        const { from, to } = excerptOf(text, new Set(['gate']), 100);
        const part = text.slice(from, to);
        expect(part.length).toBeLessThanOrEqual(100);
        expect(from).toBeLessThanOrEqual(to);
        if (/\bgates?\b/u.test(text)) expect(part).toContain('gate');
        expect(part).not.toMatch(/\p{Cs}/u);
      }),
    );
  });

  it('R7: cuts no character in two if there is no better place', () => {
    for (const shift of [0, 1]) {
      const text = `${'x'.repeat(shift)}${'😀'.repeat(500)}`;
      const { from, to } = excerptOf(text, new Set(), 101);
      expect(text.slice(from, to)).not.toMatch(/\p{Cs}/u);
    }
    const hit = `${'😀'.repeat(500)}gate${'😀'.repeat(500)}`;
    for (const longest of [100, 105]) {
      const { from, to } = excerptOf(hit, new Set(['gate']), longest);
      expect(hit.slice(from, to)).toMatch(/^(?!\p{Cs}).*gate.*(?<!\p{Cs})$/u);
    }
  });

  it.each(['gate ', 'gate wheel ', 'gate\n'])('X6: is quick with %j, repeated', (piece) => {
    const text = piece.repeat(60_000);
    const terms = new Set(['gate', 'wheel']);
    expect(isQuick(1_500, () => excerptOf(text, terms, 2_000))).toBe(true);
  });
});

describe('snippetOf', () => {
  it('gives a short text whole', () => {
    expect(snippetOf('one line\n\nanother', new Set(['line']))).toBe('one line\n\nanother');
  });

  it('cuts around the place that holds the most terms', () => {
    const text = `${filler}the gate\n${filler}the gates of a wheel turn\n${filler}`;
    const snippet = snippetOf(text, new Set(['gate', 'wheel']));
    expect(snippet).toContain('the gates of a wheel turn');
    expect(snippet).toMatch(/^… .* …$/su);
    expect(snippet.length).toBeLessThanOrEqual(604);
  });

  it('begins at the beginning if no term is found', () => {
    expect(snippetOf(filler, new Set(['gate']))).toMatch(/^lorem.* …$/su);
  });

  it('is always a part of the text, and short', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 3_000 }),
        fc.array(fc.string({ maxLength: 4 })),
        (text, terms) => {
          const snippet = snippetOf(text, new Set(terms));
          expect(snippet.length).toBeLessThanOrEqual(604);
          expect(text).toContain(snippet.replace(/^… /u, '').replace(/ …$/u, '').trim());
        },
      ),
    );
  });
});
