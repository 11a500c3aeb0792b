import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { verdictOn } from './validate.test-support.js';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('T5: what the model reads of a problem', () => {
  const names = Array.from({ length: 5_000 }, (_, n) => `name-${n}`);
  const key = 'k'.repeat(50_000);
  const list = { type: 'array', items: { type: 'string' } };

  it.each<[string, unknown, unknown]>([
    ['values that are allowed', object({ a: { enum: names } }), { a: 'b' }],
    ['a pattern', object({ a: { type: 'string', pattern: key.slice(0, 5_000) } }), { a: 'b' }],
    ['a key', object({}, { additionalProperties: list }), { [key]: [1] }],
    ['a key that is required', object({}, { required: [key] }), {}],
    [
      'keys that others need',
      object({ a: {} }, { dependentRequired: { a: names.slice(0, 50) } }),
      { a: 1 },
    ],
    ['a value', object({ a: { type: 'number' } }), { a: key }],
    ['what a library says', z.object({ a: z.enum(names) }), { a: 'b' }],
    ['keys that a library names', z.strictObject({}), { [key]: 1 }],
  ])('X11: is short, however long %s is', (_what, schema, input) => {
    const { valid, problems } = verdictOn(schema, input);
    expect(valid).toBe(false);
    for (const problem of problems) expect(problem.length).toBeLessThan(700);
    expect(problems.join('').length).toBeLessThan(16_000);
    expect(problems.join('')).toContain('…');
  });

  it('names what is allowed, as far as there is room', () => {
    const [told] = verdictOn(object({ a: { enum: names } }), { a: 'b' }).problems;
    expect(told).toMatch(
      /^a: must be equal to one of the allowed values: \["name-0","name-1",.*… \(received "b"\)$/,
    );
    expect(verdictOn(object({ a: { enum: ['C', null, 1] } }), { a: 'b' }).problems).toEqual([
      'a: must be equal to one of the allowed values: ["C",null,1] (received "b")',
    ]);
  });

  it('are no more than twenty, and the number of the others', () => {
    const schema = object({ list });
    const some = (count: number) => ({ list: Array.from({ length: count }, () => 1) });
    expect(verdictOn(schema, some(20)).problems).toHaveLength(20);
    const { problems } = verdictOn(schema, some(10_000));
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe('and 9980 more');
  });
});
