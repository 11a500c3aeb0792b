import { describe, expect, it } from '@jest/globals';
import {
  contentTokens,
  isStopWord,
  overlaps,
  senseOf,
  stemOf,
  stemsOf,
  tokensOf,
  wordsOf,
} from './words.js';

describe('tokensOf', () => {
  it('takes the punctuation off, and says where each token stands', () => {
    const text = `What's "README.md" (v2), Tokyo's?`;
    const tokens = tokensOf(text);
    expect(tokens.map((token) => token.text)).toEqual(['What', 'README.md', 'v2', 'Tokyo']);
    expect(tokens.every((it) => text.slice(it.start, it.end) === it.text)).toBe(true);
  });

  it('gives nothing for punctuation alone', () => {
    expect(tokensOf('?! … ""')).toEqual([]);
  });
});

describe('contentTokens', () => {
  it('leaves out stop words and signs', () => {
    const tokens = contentTokens('Could you please tell me how the loop works, and 3 + 4?');
    expect(tokens.map(({ text }) => text)).toEqual(['loop', '3', '4']);
  });
});

describe('stemOf', () => {
  it.each([
    ['licence', 'licenses'],
    ['colour', 'colors'],
    ['kilometres', 'kilometers'],
    ['calculate', 'calculator'],
    ['reads', 'reading'],
    ['stopped', 'stop'],
    ['cities', 'city'],
    ['Interrupts', 'interrupted'],
    ['initialise', 'initialized'],
  ])('gives %s and %s one stem', (one, other) => {
    expect(stemOf(one)).toBe(stemOf(other));
  });

  it('leaves short words, codes and names of objects as they are', () => {
    expect(['class', 'bus', 'L3', 'constructor', '__proto__'].map(stemOf)).toEqual([
      'class',
      'bus',
      'l3',
      'construct',
      '__proto__',
    ]);
  });
});

describe('stemsOf', () => {
  it('takes names apart', () => {
    expect(stemsOf('readFile read_file, HTTPServer')).toEqual(
      ['read', 'file', 'read', 'file', 'httpserver'].map(stemOf),
    );
  });
});

it('wordsOf keeps the words that say nothing', () => {
  expect(wordsOf('theTimeIn')).toEqual(['the', 'time', 'in']);
});

it('senseOf groups words of like meaning', () => {
  expect(senseOf(stemOf('show'))).toBe(senseOf(stemOf('reads')));
  expect(senseOf('unheardof')).toBe('unheardof');
});

it('isStopWord reads over case and apostrophes', () => {
  expect(['What’s', 'THE', 'it'].every(isStopWord)).toBe(true);
  expect(isStopWord('toString')).toBe(false);
});

it('overlaps asks for a common character', () => {
  expect(overlaps({ start: 0, end: 2 }, { start: 1, end: 3 })).toBe(true);
  expect(overlaps({ start: 0, end: 2 }, { start: 2, end: 3 })).toBe(false);
});
