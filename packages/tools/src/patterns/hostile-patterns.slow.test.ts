import { describe, expect, it } from '@jest/globals';
import { isQuick } from '../is-quick.test-support.js';
import { linearPatterns } from './index.js';

type TextOf = (length: number) => string;

const ends =
  (unit: string): TextOf =>
  (length) =>
    `${unit.repeat(length / unit.length)}!`;

/** Letters without an order, the same each time. */
const mixed = (of: number): TextOf => {
  let seed = 1;
  const some = Array.from({ length: 50_000 }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return String.fromCharCode(97 + ((seed >> 16) % of));
  });
  const many = some.join('').repeat(20);
  return (length) => many.slice(0, length);
};

const ideographs = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => String.fromCodePoint(0x3000 + 2 * n));

const syllables = `^(${ideographs(190)
  .map((it) => `${it}[a-z]`)
  .join('|')})*$`;

const email = String.raw`^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$`;

const nested = (depth: number, inner: string, close: string): string =>
  `${'('.repeat(depth)}${inner}${close.repeat(depth)}$`;

const run = (pattern: string, given: string): boolean | 'refused' => {
  try {
    return linearPatterns(pattern).test(given);
  } catch {
    return 'refused';
  }
};

const lengths = [300, 600, 1_200, 2_400, 10_000, 80_000, 250_000, 1_000_000];

describe('X13: a hostile pattern blocks for less than 100 ms, with text of up to 1 MB', () => {
  it.each<[name: string, pattern: string, textOf: TextOf]>([
    ['repeated repetition', '^(a+)+$', ends('a')],
    ['repeated nothing', '^(a*)*$', ends('a')],
    ['the same in two ways', '^(a|aa)+$', ends('a')],
    ['something or nothing', '^(a|a?)+$', ends('a')],
    ['class names', '^(([a-z])+.)+[A-Z]([a-z])+$', mixed(26)],
    ['twenty gaps', '(.*a){20}[x-z]', mixed(2)],
    ['eleven columns', '^(.*?,){11}P', ends('1,')],
    ['addresses', email, ends('a')],
    ['space at the end', String.raw`\s+$`, (length) => `${' '.repeat(length)}a`],
    ['words', String.raw`^(\w+\s?)*$`, ends('ab ')],
    ['two repetitions', '(x+x+)+y', ends('x')],
    ['a?^n a^n', '^(a?){200}a{200}$', (length) => 'a'.repeat(length)],
    ['thousands of states', '(a|b)*a(a|b){12}[x-z]', mixed(2)],
    ['more states than memory', '(a|b)*a(a|b){60}[x-z]', mixed(2)],
    ['large states', '(a|b)*a(a|b){250}[x-z]', mixed(2)],
    ['boundaries', String.raw`(\b.?|\B.){60}[x-z]$`, mixed(26)],
    ['a thousand times', 'a{1000}', ends('a')],
    ['thirty times thirty', '(a{0,30}){0,30}b$', ends('a')],
    ['99 groups, repeated', nested(99, 'a', ')*'), ends('a')],
    ['99 groups, optional', nested(99, 'a', '?b)*'), ends('ab')],
    ['a thousand groups', nested(999, '', ')'), ends('a')],
    ['2,000 open brackets', '['.repeat(2_000), ends('[')],
    ['a thousand ways', `${'a|'.repeat(990)}b$`, ends('a')],
    ['190 syllables', syllables, mixed(3)],
    [
      '190 syllables that match',
      syllables,
      ends(
        ideographs(190)
          .map((it) => `${it}x`)
          .join(''),
      ),
    ],
    ['1,900 characters', `^[${ideographs(1_900).join('')}]+$`, ends('\u{3ed6}')],
    ['properties', String.raw`^([\p{L}\p{N}]0|\p{P}b|\p{S}c|\p{M}d)*$`, ends('😀c')],
    ['repeated properties', String.raw`^(\p{L}|\p{N}|\p{P}){0,60}[x-z]$`, mixed(26)],
    ['400 properties', String.raw`\p{L}`.repeat(400), mixed(26)],
  ])('X13: %s', (_, pattern, textOf) => {
    const slow = lengths.filter((length) => {
      const given = textOf(length);
      return !isQuick(100, () => run(pattern, given));
    });
    expect(slow).toEqual([]);
  });
});
