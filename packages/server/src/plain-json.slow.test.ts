import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { plainJson } from './plain-json.js';
import { readAsAiSdk } from './read-as-client.test-support.js';

describe('plainJson', () => {
  it('copies what JSON can hold', () => {
    const value = { a: [1, 'b', null, true, { c: 1.5 }] };
    expect(plainJson(value)).toEqual(value);
    expect(plainJson(value)).not.toBe(value);
    expect(plainJson('text')).toBe('text');
    expect(plainJson(0)).toBe(0);
  });

  it('replaces values that JSON cannot represent by sentences', () => {
    const cycle: Record<string, unknown> = {};
    cycle['it'] = cycle;
    const sentence = '(not representable in JSON)';
    expect(plainJson(cycle)).toBe(sentence);
    expect(
      plainJson({
        toJSON: () => {
          throw new Error('no');
        },
      }),
    ).toBe(sentence);
    expect([undefined, () => 1, Symbol('s'), NaN].map(plainJson)).toEqual([null, null, null, null]);
    expect(plainJson({ big: 12n, at: new Date(0), none: undefined })).toEqual({
      big: '12',
      at: '1970-01-01T00:00:00.000Z',
    });
  });

  it('X15: has no key that reaches a prototype, at any depth', () => {
    const hostile = JSON.parse(
      '{"a":[{"__proto__":{"polluted":1},"b":2}],"constructor":{"prototype":{"polluted":1}}}',
    ) as unknown;
    expect(JSON.stringify(plainJson(hostile))).toBe('{"a":[{"b":2}]}');
    expect(plainJson({ constructor: 'Ferrari' })).toEqual({ constructor: 'Ferrari' });
  });

  it('X15: is taken by the strictest reader, for any contents', async () => {
    const keys = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'prototype'));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.anything(),
        fc.array(tie('value')),
        fc.dictionary(keys, tie('value')),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(value, async (it) => {
        const { errors } = await readAsAiSdk([{ type: 'data-output', data: plainJson(it) }]);
        expect(errors).toEqual([]);
      }),
    );
  });
});
