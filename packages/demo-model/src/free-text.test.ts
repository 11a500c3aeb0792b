import { describe, expect, it } from '@jest/globals';
import { namesIn, proseIn, queryIn, type Source, unquoted } from './free-text.js';

const source = (text: string, given: Partial<Source> = {}): Source => ({
  text,
  reference: undefined,
  taken: [],
  ownStems: new Set(['not']),
  wholeText: false,
  ...given,
});

const valueOf = (values: ReturnType<typeof queryIn>): unknown => values[0]?.value;

describe('free text', () => {
  it('queries with the words that matter', () => {
    expect(valueOf(queryIn(source('what does the loop do?')))).toBe('loop');
    expect(valueOf(queryIn(source('note the loop')))).toBe('loop');
    expect(valueOf(queryIn(source('what is it?')))).toBeUndefined();
  });

  it('takes prose that is set apart, or what is left', () => {
    expect(valueOf(proseIn(source('note "a b"')))).toBe('a b');
    expect(valueOf(proseIn(source('note this: a b')))).toBe('a b');
    expect(
      valueOf(proseIn(source('note buy milk to Ada', { taken: [{ start: 17, end: 20 }] }))),
    ).toBe('buy milk');
    expect(valueOf(proseIn(source('note', { wholeText: true })))).toBe('note');
    expect(valueOf(proseIn(source('note')))).toBeUndefined();
  });

  it('takes names', () => {
    expect(valueOf(namesIn(source('note Ada Lovelace here')))).toBe('Ada Lovelace');
    expect(valueOf(namesIn(source('note ada')))).toBe('ada');
  });
});

it('unquoted takes the marks off', () => {
  expect(unquoted('“a”')).toBe('a');
});
