import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { mayRepeatKeys } from './json.js';
import { readJson } from './read-json.js';

/** A value whose objects are lists of members, so a key may come twice. */
type Written = string | number | boolean | readonly Written[] | { readonly of: readonly Member[] };
type Member = readonly [key: string, value: Written];

const key = fc.oneof(
  fc.constantFrom('to', 'C:\\', 'C:\\\\', 'a"b', '":', '\\"', ':', ''),
  fc.string({ unit: fc.constantFrom('\\', '"', ':', ' ', 'a', '\n'), maxLength: 4 }),
);
const { written } = fc.letrec<{ written: Written }>((tie) => ({
  written: fc.oneof(
    { maxDepth: 3 },
    key,
    fc.nat(9),
    fc.array(tie('written'), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie('written')), { maxLength: 4 }).map((of) => ({ of })),
  ),
}));

const isObject = (value: Written): value is { readonly of: readonly Member[] } =>
  typeof value === 'object' && 'of' in value;

const jsonOf = (value: Written, space: string): string => {
  if (isObject(value)) {
    const members = value.of.map(
      ([name, it]) => `${JSON.stringify(name)}${space}:${jsonOf(it, space)}`,
    );
    return `{${members.join(`${space},`)}}`;
  }
  if (typeof value !== 'object') return JSON.stringify(value);
  return `[${value.map((it) => jsonOf(it, space)).join(`,${space}`)}]`;
};

/** An object with a key that comes twice, within others. */
const repeating = fc
  .tuple(key, fc.tuple(written, written), fc.array(fc.tuple(key, written), { maxLength: 3 }), key)
  .map(([name, [one, other], between, outer]): Written => ({
    of: [[outer, [{ of: [[name, one], ...between, [name, other]] }]]],
  }));

describe('X11: a key that comes twice', () => {
  it('is found beside keys and strings of any content', () => {
    fc.assert(
      fc.property(repeating, fc.constantFrom('', ' ', '\n\t'), (value, space) => {
        const json = jsonOf(value, space);
        expect([json, mayRepeatKeys(json, JSON.parse(json))]).toEqual([json, true]);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    String.raw`{"C:\\":true,"to":"alice","to":"bob"}`,
    String.raw`{"C:\\":"keep","C:\\":"delete"}`,
    String.raw`{"a":{"\\\\":1,"to":1,"to":2}}`,
  ])('with different values is refused: %s', (json) => {
    expect(readJson(json)).toEqual({ problem: expect.stringContaining('twice') as unknown });
  });

  it.each([
    String.raw`{"C:\\":true,"to":"bob"}`,
    String.raw`{"a\"":"\": ","b":":c"}`,
    String.raw`{"a":"{\"to\":1,\"to\":2}"}`,
  ])('is not found in JSON without one: %s', (json) => {
    expect(readJson(json)).toEqual({ value: JSON.parse(json) as unknown });
  });
});
