import { describe, expect, it } from '@jest/globals';
import { coverage, excerpt, focusOf } from './excerpt.js';

const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`).join('\n');

describe('excerpt', () => {
  it('takes the lines in focus', () => {
    expect(excerpt(`${lines}\n  "version": "1.2"`, focusOf('the version'))).toBe(
      '"version": "1.2"',
    );
  });

  it('takes the beginning otherwise, and says how much is left', () => {
    const taken = excerpt(lines, focusOf('what?'));
    expect(taken.startsWith('line 0\nline 1\n')).toBe(true);
    expect(taken).toMatch(/\n… \(\d+ more characters\)$/u);
    expect(excerpt('short', focusOf('other words'))).toBe('short');
  });

  it('cuts long lines', () => {
    expect(excerpt('x'.repeat(5_000), new Set())).toContain('xxx…');
  });
});

it('coverage is the part of the words that a text holds', () => {
  expect(coverage('It interrupted the loop', focusOf('interrupts of calls'))).toBe(0.5);
  expect(coverage('anything', new Set())).toBe(0);
});

it('focusOf takes names apart, and leaves out what is given', () => {
  expect([...focusOf('highWaterMark in file', focusOf('mark'))]).toEqual(['high', 'wat', 'fil']);
});
