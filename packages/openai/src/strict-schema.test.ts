import { describe, expect, it } from '@jest/globals';
import { isStrictSchema, strictSchema } from './strict-schema.js';

const closed = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});

const text = { type: 'string' };

const nested = (levels: number): object =>
  levels === 1 ? text : closed({ a: nested(levels - 1) });

describe('isStrictSchema', () => {
  it.each([
    [
      'closed objects',
      closed({ city: text, days: { type: 'array', items: closed({ day: text }) } }),
    ],
    [
      'what may be null',
      closed({ a: { type: ['string', 'null'] }, b: { anyOf: [text, closed({})] } }),
    ],
    ['definitions', closed({ a: { $ref: '#/$defs/a' } }, { $defs: { a: closed({}) } })],
    ['a key that is named like a keyword', closed({ default: text, allOf: text })],
    ['what libraries add', closed({}, { $schema: 'x', title: 'T', description: 'D' })],
    ['ten levels', nested(10)],
  ])('R3: takes %s', (_what, schema) => {
    expect(isStrictSchema({ ...schema })).toBe(true);
  });

  it.each([
    ['an open object', { type: 'object', properties: {} }],
    ['an optional key', closed({ a: text }, { required: [] })],
    ['a required key that is not there', closed({ a: text }, { required: ['a', 'b'] })],
    ['an open object within', closed({ a: { type: 'array', items: { type: 'object' } } })],
    ['an open object in a definition', closed({}, { $defs: { a: { type: 'object' } } })],
    ['an open alternative', closed({ a: { anyOf: [{ type: ['object', 'null'] }] } })],
    ['a keyword that is not supported', closed({ a: { type: 'string', minLength: 1 } })],
    ['a default', closed({ a: { type: 'string', default: 'x' } })],
    ['a format that is not supported', closed({ a: { type: 'string', format: 'uri' } })],
    ['anything at all', closed({ a: {} })],
    ['a reference with a comment', closed({ a: { $ref: '#', description: 'D' } })],
    ['alternatives at the root', closed({}, { anyOf: [closed({})] })],
    ['a root that is no object', { type: 'array', items: text }],
    ['eleven levels', nested(11)],
    ['a schema that is true', closed({ a: true })],
    [
      'keys beside alternatives',
      closed({ a: closed({ b: text }, { anyOf: [closed({ b: text })] }) }),
    ],
    [
      'a closed object beside alternatives',
      closed({ a: { additionalProperties: false, anyOf: [closed({ b: text })] } }),
    ],
    ['keys beside values', closed({ a: closed({ b: text }, { const: { b: 'x' } }) })],
  ])('R3: refuses %s', (_what, schema) => {
    expect(isStrictSchema({ ...schema })).toBe(false);
  });
});

describe('strictSchema', () => {
  const open = (properties: object, more: object = {}) => ({
    type: 'object',
    properties,
    required: Object.keys(properties),
    ...more,
  });

  it('R3: closes the objects that do not say whether they are', () => {
    const schema = (object: typeof open) =>
      object(
        {
          a: object({ b: text }),
          c: { type: 'array', items: object({ d: text }) },
          e: { anyOf: [object({ f: text }), { type: 'null' }] },
        },
        { $defs: { g: object({ h: text }) } },
      );
    const given = schema(open);
    const before = structuredClone(given);
    expect(strictSchema(given)).toEqual(schema(closed));
    expect(given).toEqual(before);
  });

  it.each([
    ['an optional key', open({ a: text }, { required: [] })],
    ['a map of any keys', open({ a: { type: 'object' } })],
    ['a map that names no keys', open({ a: open({}) })],
    ['an object that says it is open', open({ a: text }, { additionalProperties: true })],
    ['a map of one kind', open({ a: text }, { additionalProperties: text })],
  ])('R3: has nothing for %s', (_what, schema) => {
    expect(strictSchema({ ...schema })).toBeUndefined();
  });

  it.each([
    ['anyOf', [open({ id: text }), open({ name: text })]],
    ['allOf', [open({ id: text })]],
    ['enum', [{ kind: 'a', id: 'b' }]],
    ['const', { kind: 'a', id: 'b' }],
  ])('R3: has nothing for keys beside %s, which may speak of further ones', (keyword, value) => {
    const target = open({ kind: text }, { [keyword]: value });
    expect(strictSchema(target)).toBeUndefined();
    expect(strictSchema(open({ target }))).toBeUndefined();
    const referring = open({ target: { $ref: '#/$defs/target' } }, { $defs: { target } });
    expect(strictSchema(referring)).toBeUndefined();
  });
});
