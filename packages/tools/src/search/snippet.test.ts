import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { snippetOf } from './snippet.js';

const filler = 'lorem ipsum dolor sit amet '.repeat(60);

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

  it('begins at the beginning where no term is found', () => {
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
