import { describe, expect, it } from '@jest/globals';
import { showValue } from './show-value.js';

const circular: Record<string, unknown> = {};
circular['x'] = circular;
const nested = JSON.parse('[[[[[[[[1]]]]]]]]');

describe('showValue', () => {
  it.each([
    ['a string', 'a string'],
    [5, '5'],
    [-0, '0'],
    [2n ** 70n, '1180591620717411303424n'],
    [undefined, 'undefined'],
    [[3, null, 'x'], '[ 3, null, "x" ]'],
    [{ a: [1, { b: 'x' }], 'c d': undefined }, '{ a: [ 1, { b: "x" } ], "c d": undefined }'],
    [new Map([[1, new Set(['a'])]]), 'Map { 1 => Set { "a" } }'],
    [new Uint8Array([1, 2]), 'Uint8Array { 1, 2 }'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [new Date(Number.NaN), 'Invalid Date'],
    [[[], {}, /x/gu, Symbol('s'), showValue], '[ [], {}, /x/gu, Symbol(s), [function showValue] ]'],
    [circular, '{ x: [circular] }'],
    [nested, '[ [ [ [ [ [ […] ] ] ] ] ] ]'],
    [Array.from({ length: 1000 }, () => 1), expect.stringMatching(/^\[ (1, ){100}… 900 more \]$/u)],
    [Object.create(null), '{}'],
  ])('shows %p', (value, expected) => {
    expect(showValue(value, 1_000)).toEqual(expected);
  });

  it.each([
    [
      'a getter',
      {
        get: 5,
        get a() {
          throw new Error('x');
        },
      },
    ],
    [
      'a key',
      new Proxy(
        {},
        {
          ownKeys() {
            throw 5;
          },
        },
      ),
    ],
    [
      'a stack',
      Object.defineProperty(new Error('x'), 'stack', {
        get() {
          throw 5;
        },
      }),
    ],
    [
      'a prototype',
      new Proxy(
        {},
        {
          getPrototypeOf() {
            throw 5;
          },
        },
      ),
    ],
  ])('survives %s that throws', (_, value) => {
    expect(showValue(value, 1_000)).toMatch(/^\(This value cannot be shown/u);
  });

  it.each([
    ['x'.repeat(1e5)],
    [Array.from({ length: 200 }, () => 'x'.repeat(200))],
    [{ ['k'.repeat(1e4)]: 'x'.repeat(1e4) }],
    [Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => Array(100).fill(0)))],
    [
      new Proxy([], {
        get: (_, name) =>
          name === 'length'
            ? 1e9
            : name === Symbol.iterator
              ? function* () {
                  for (;;) yield 'x';
                }
              : undefined,
      }),
    ],
    [
      Object.assign(new Error('m'.repeat(1e5)), {
        name: 'n'.repeat(1e5),
        stack: 'code.js'.repeat(1e5),
      }),
    ],
  ])('keeps to its limit, sample %#', (value) => {
    expect(showValue(value, 500).length).toBeLessThan(1_100);
  });
});
