import { describe, expect, it } from '@jest/globals';
import { foundNothing, passagesOf, plainText, valueOf } from './read-result.js';

describe('valueOf', () => {
  it('keeps every digit of a number', () => {
    expect(valueOf('18446744073709551616')).toBe('18446744073709551616');
  });

  it.each([
    ['42', '42'],
    ['2 + 2 = 4', '4'],
    ['{"result": 15.5, "unit": "km"}', '15.5'],
    ['{"only": "this"}', 'this'],
    ['true', 'true'],
    ['8.04 km', '8.04 km'],
    ['{"a": 1, "b": 2}', undefined],
    ['[1, 2]', undefined],
    ['two\nlines', undefined],
    ['', undefined],
    ['x'.repeat(300), undefined],
    ['{"__proto__": {"result": 1}}', undefined],
  ])('%j gives %j', (result, value) => {
    expect(valueOf(result)).toBe(value);
  });
});

describe('passagesOf', () => {
  it('reads JSON', () => {
    expect(passagesOf('[{"path": "a.md", "text": "One."}, "Two.", 3]')).toEqual([
      { text: 'One.', source: 'a.md' },
      { text: 'Two.' },
    ]);
    expect(passagesOf('{"hits": [{"title": "T", "whatever": "Longer text."}]}')).toEqual([
      { text: 'Longer text.', source: 'T' },
    ]);
  });

  it('reads blocks of text below their sources', () => {
    const text =
      'Found 2:\n\n1. a.md:3 › A (relevance 9 %)\nOne.\n\nMore.\n\nhttps://b.example\nTwo.';
    expect(passagesOf(text)).toEqual([
      { text: 'One.\n\nMore.', source: 'a.md:3 › A', relevance: 0.09 },
      { text: 'Two.', source: 'https://b.example' },
    ]);
  });

  it('reads blocks without sources', () => {
    expect(passagesOf('One.\n\nTwo.')).toEqual([{ text: 'One.' }, { text: 'Two.' }]);
    expect(passagesOf('')).toEqual([]);
  });
});

it.each([
  ['Nothing in 3 files matches.', true],
  ['No results', true],
  ['[]', true],
  ['Notes on streams', false],
  ['a.md\nNothing to see', false],
])('foundNothing(%j) is %s', (result, expected) => {
  expect(foundNothing(result)).toBe(expected);
});

it.each([
  [' text ', 'text'],
  ['{"a": 1, "b": "x"}', 'a: 1, b: x'],
  ['{"a": {"b": 1}}', '{"a": {"b": 1}}'],
  ['{\n"a": 1}', '{\n"a": 1}'],
  ['"quoted"', 'quoted'],
  ['{broken', '{broken'],
])('plainText(%j) is %j', (result, expected) => {
  expect(plainText(result)).toBe(expected);
});
