import { describe, expect, it } from '@jest/globals';
import { toolSchema } from './tool-schema.js';

const city = { type: 'object', properties: { city: { type: 'string' } } };

describe('toolSchema', () => {
  it('X16: gives an object properties, and leaves a good schema as it is', () => {
    expect(toolSchema({ type: 'object' })).toEqual({ type: 'object', properties: {} });
    expect(toolSchema({})).toEqual({ type: 'object', properties: {} });
    expect(toolSchema(city)).toEqual(city);
  });

  it.each(['anyOf', 'oneOf', 'allOf'])('X16: describes a top-level %s in words', (keyword) => {
    const schema = { ...city, description: 'Where.', [keyword]: [{ required: ['city'] }] };
    expect(toolSchema(schema)).toEqual({
      ...city,
      description: `Where.\n${keyword}: [{"required":["city"]}]`,
    });
  });

  it.each([
    ['enum', [{ city: 'Oslo' }]],
    ['const', { city: 'Oslo' }],
    ['not', { required: ['zip'] }],
  ])('X16: describes a top-level %s in words', (keyword, value) => {
    expect(toolSchema({ ...city, [keyword]: value })).toEqual({
      ...city,
      description: `${keyword}: ${JSON.stringify(value)}`,
    });
  });

  it('X16: gives lists items, wherever they are', () => {
    const list = { type: 'array' };
    const full = { type: 'array', items: {} };
    const schema = (it: object) => ({
      type: 'object',
      properties: {
        a: it,
        b: { anyOf: [it, { type: 'null' }] },
        c: { type: 'array', items: it },
        d: { ...it, type: ['array', 'null'] },
        items: { type: 'object', additionalProperties: it },
      },
      $defs: { list: it },
    });
    expect(toolSchema(schema(list))).toEqual(schema(full));
  });

  it('does not touch what only looks like a schema, nor what it was given', () => {
    const schema = {
      type: 'object',
      properties: { kind: { const: { type: 'array' }, default: { type: 'array' } } },
    };
    const before = structuredClone(schema);
    expect(toolSchema(schema)).toEqual(before);
    const list = { type: 'object', properties: { all: { type: 'array' } } };
    toolSchema(list);
    expect(list.properties.all).toEqual({ type: 'array' });
  });
});
