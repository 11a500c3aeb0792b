import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import { enablePatches, produceWithPatches } from 'immer';
import type { StatePatch } from '../../events.js';
import { toJsonPatch } from './session-state.js';

enablePatches();

const applied = (state: unknown, patches: readonly StatePatch[]): unknown => {
  const operations = toJsonPatch(patches).map((operation) => ({ ...operation }));
  const patch = operations as Parameters<typeof jsonPatch.applyPatch>[1];
  expect(jsonPatch.validate(patch, state)).toBeUndefined();
  return jsonPatch.applyPatch(structuredClone(state), patch).newDocument;
};

/** Keys that a JSON Pointer has to escape, or that look like the index of a list. */
const key = fc.oneof(fc.constantFrom('', '/', '~', '~1', 'a/b', '0', '-', 'length'), fc.string());

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      key.filter((it) => it !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
}));

describe('S5: toJsonPatch', () => {
  it('makes the same state as immer, for any reader of RFC 6902', () => {
    const state = fc.record({
      list: fc.array(value, { maxLength: 5 }),
      fields: fc.dictionary(
        key.filter((it) => it !== '__proto__'),
        value,
      ),
    });
    fc.assert(
      fc.property(state, state, key, (before, other, field) => {
        fc.pre(field !== '__proto__');
        const [after, patches] = produceWithPatches(before, (draft) => {
          draft.list.splice(1, 2, ...other.list);
          draft.list.reverse();
          Object.assign(draft.fields, other.fields);
          Reflect.deleteProperty(draft.fields, Object.keys(before.fields)[0] ?? '');
          draft.fields[field] = other.list;
        });
        expect(applied(before, patches)).toEqual(after);
      }),
      { numRuns: 500 },
    );
  });

  it('replaces a whole, and has no undefined', () => {
    const whole: StatePatch = { op: 'replace', path: [], value: { a: undefined, b: [undefined] } };
    expect(toJsonPatch([whole])).toEqual([{ op: 'replace', path: '', value: { b: [null] } }]);
    const patches: readonly StatePatch[] = [
      { op: 'replace', path: ['a'], value: undefined },
      { op: 'add', path: ['b'], value: undefined },
      { op: 'add', path: ['c', 0], value: undefined },
      { op: 'remove', path: ['d', 1], value: 'before' },
    ];
    expect(toJsonPatch(patches)).toEqual([
      { op: 'remove', path: '/a' },
      { op: 'add', path: '/c/0', value: null },
      { op: 'remove', path: '/d/1' },
    ]);
  });

  it('X15: carries no key that reaches a prototype', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"polluted":1},"a":1}');
    expect(JSON.stringify(toJsonPatch([{ op: 'add', path: ['x'], value: hostile }]))).toBe(
      '[{"op":"add","path":"/x","value":{"a":1}}]',
    );
  });
});
