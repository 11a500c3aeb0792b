import { describe, expect, it } from '@jest/globals';
import type { JsonSchema } from 'millrace';
import { nativeSchema } from './native-schema.js';

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...more,
});

const text = { type: 'string' };

describe('a schema that Anthropic holds answers to', () => {
  it('R3: closes objects at every level, and takes the rest as it is', () => {
    expect(
      nativeSchema(
        object(
          {
            name: text,
            tags: { type: 'array', items: object({ a: text }), minItems: 1 },
            at: { type: 'string', format: 'date-time' },
            kind: { enum: ['a', null, 3] },
            one: { oneOf: [text, { type: 'null' }] },
            other: { $ref: '#/$defs/other' },
          },
          {
            required: ['name'],
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            $defs: { other: text },
          },
        ),
      ),
    ).toEqual({
      type: 'object',
      properties: {
        name: text,
        tags: {
          type: 'array',
          items: object({ a: text }, { additionalProperties: false }),
          minItems: 1,
        },
        at: { type: 'string', format: 'date-time' },
        kind: { enum: ['a', null, 3] },
        one: { anyOf: [text, { type: 'null' }] },
        other: { $ref: '#/$defs/other' },
      },
      required: ['name'],
      $defs: { other: text },
      additionalProperties: false,
    });
  });

  it('R3: says in the description what bounds a value', () => {
    expect(
      nativeSchema(
        object({ age: { type: 'integer', minimum: 0, maximum: 150, description: 'In years.' } }),
      ),
    ).toMatchObject({
      properties: { age: { type: 'integer', description: 'In years.\nminimum: 0, maximum: 150' } },
    });
  });

  it.each<[string, JsonSchema]>([
    [
      'a map of any keys',
      object({ counts: { type: 'object', additionalProperties: { type: 'number' } } }),
    ],
    ['an object that says nothing of its keys', { type: 'object' }],
    ['an open object', object({ a: text }, { additionalProperties: true })],
    ['a key that is required but not described', object({ a: text }, { required: ['b'] })],
    ['a value of any type', object({ a: {} })],
    ['an array of anything', object({ a: { type: 'array' } })],
    ['allOf', object({ a: { allOf: [text] } })],
    ['a schema that is true', object({ a: true })],
    ['an enum of objects', object({ a: { enum: [{}] } })],
    ['a keyword that is not known', object({ a: { type: 'string', not: { const: 'b' } } })],
    [
      'a schema that refers to itself',
      object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: object({ a: { $ref: '#/$defs/a' } }) } }),
    ],
    [
      'definitions that refer to each other, though nothing refers to them',
      object({ a: text }, { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }),
    ],
    ['a reference to elsewhere', object({ a: { $ref: 'https://example.com/a.json' } })],
    [
      'more optional keys than are taken',
      object(Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`k${at}`, text]))),
    ],
    [
      'more unions than are taken',
      object(
        Object.fromEntries(
          Array.from({ length: 17 }, (_, at) => [`k${at}`, { type: ['string', 'null'] }]),
        ),
        { required: Array.from({ length: 17 }, (_, at) => `k${at}`) },
      ),
    ],
  ])('R3: leaves %s to a tool', (_, schema) => {
    expect(nativeSchema(schema)).toBeUndefined();
  });

  it('looks at definitions that share others once', () => {
    const links = Array.from({ length: 40 }, (_, at) => [
      `d${at}`,
      at === 39
        ? text
        : object(
            { a: { $ref: `#/$defs/d${at + 1}` }, b: { $ref: `#/$defs/d${at + 1}` } },
            { required: ['a', 'b'] },
          ),
    ]);
    const schema = object({ a: { $ref: '#/$defs/d0' } }, { $defs: Object.fromEntries(links) });
    expect(nativeSchema(schema)).toBeDefined();
  });
});
