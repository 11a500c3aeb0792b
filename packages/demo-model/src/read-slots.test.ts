import { describe, expect, it } from '@jest/globals';
import { readSlots } from './read-slots.js';

describe('readSlots', () => {
  it('reads what the schema says of each parameter', () => {
    const slots = readSlots({
      type: 'object',
      required: ['count'],
      properties: {
        tags: { type: 'array', items: { enum: ['a', 'b'] } },
        count: { type: 'integer', minimum: 1, maximum: 9, default: 3, description: 'How many' },
      },
    });
    expect(slots).toMatchObject([
      { name: 'tags', kind: 'choice', many: true, required: false, choices: ['a', 'b'] },
      {
        name: 'count',
        kind: 'number',
        required: true,
        whole: true,
        minimum: 1,
        maximum: 9,
        fallback: 3,
        description: 'How many',
      },
    ]);
  });

  it('reads an alternative that is not null', () => {
    const city = { anyOf: [{ type: 'string', examples: ['Oslo'] }, { type: 'null' }] };
    const [slot] = readSlots({ type: 'object', properties: { city } });
    expect(slot).toMatchObject({ kind: 'place', examples: ['Oslo'] });
  });

  it('knows required parameters that have no schema', () => {
    expect(readSlots({ type: 'object', required: ['name'] })).toMatchObject([
      { name: 'name', required: true },
    ]);
  });

  it.each([
    {},
    { properties: 7, required: 'x' },
    { properties: { a: null, b: [], c: 'x' }, required: [1, null] },
    { properties: { a: { type: 7, enum: 'x', examples: {}, pattern: '[', anyOf: [null] } } },
  ])('makes the best of %j', (schema) => {
    expect(() => readSlots(schema)).not.toThrow();
  });
});
