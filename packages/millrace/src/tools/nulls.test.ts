import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { createAgent, type InputSchema, output, preset, tool } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';

const played = async (input: InputSchema, given: Readonly<Record<string, unknown>>) => {
  const ran: unknown[] = [];
  const find = tool({
    name: 'find',
    description: 'Finds.',
    input,
    run: (value) => {
      ran.push(value);
      return 'ok';
    },
  });
  const model = scriptedModel([toolCall('find', given)], [text('ok')]);
  const events = await record(createAgent({ model, tools: [find] }).stream$('?'));
  return {
    ran,
    given: events.flatMap((it) => (it.type === 'postActing' ? [it.toolCall.input] : [])),
    repaired: events.flatMap((it) => (it.type === 'repaired' ? [[it.before, it.after]] : [])),
    results: events.flatMap((it) => (it.type === 'postActing' ? [it.result] : [])),
  };
};

const json = (schema: object): InputSchema => jsonSchema({ type: 'object', ...schema });
const text_ = { type: 'string' };
const kind = (name: string, more: object) => ({
  type: 'object',
  properties: { kind: { const: name }, ...more },
  required: ['kind'],
});

describe('T5: a null that the schema forbids', () => {
  it.each<[string, InputSchema, Readonly<Record<string, unknown>>, unknown]>([
    ['an optional key', z.object({ a: z.string().optional() }), { a: null }, {}],
    ['a key with a default', z.object({ a: z.number().default(10) }), { a: null }, { a: 10 }],
    [
      'a nested key',
      z.object({ in: z.object({ a: z.string().optional(), b: z.number() }) }),
      { in: { a: null, b: 1 } },
      { in: { b: 1 } },
    ],
    [
      'a key in an array',
      z.object({ list: z.array(z.object({ a: z.string().optional() })) }),
      { list: [{ a: null }, { a: 'x' }] },
      { list: [{}, { a: 'x' }] },
    ],
    ['an optional object', z.object({ in: z.object({}).optional() }), { in: null }, {}],
    ['JSON Schema', json({ properties: { a: text_ } }), { a: null }, {}],
    ['an enum', json({ properties: { a: { enum: ['x', 'y'] } } }), { a: null }, {}],
    [
      'a reference',
      json({ properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: text_ } }),
      { a: null },
      {},
    ],
    [
      'a key of a part in allOf',
      json({ allOf: [{ properties: { a: text_ } }, { required: ['b'] }] }),
      { a: null, b: 1 },
      { b: 1 },
    ],
    [
      'a union that admits no null',
      json({ properties: { a: { anyOf: [text_, { type: 'number' }] } } }),
      { a: null },
      {},
    ],
    [
      'the alternative that the input means',
      json({
        properties: {
          it: { oneOf: [kind('a', { x: text_ }), kind('b', { x: { type: ['string', 'null'] } })] },
        },
      }),
      { it: { kind: 'a', x: null } },
      { it: { kind: 'a' } },
    ],
    [
      'a schema that refers to itself',
      json({ properties: { next: { $ref: '#' }, a: text_ } }),
      { next: { next: { a: null }, a: 'x' } },
      { next: { next: {}, a: 'x' } },
    ],
  ])('is dropped and reported: %s', async (_, schema, given, value) => {
    const { ran, repaired, results } = await played(schema, given);
    expect(results).toMatchObject([{ isError: false }]);
    expect(ran).toEqual([value]);
    expect(repaired).toHaveLength(1);
    expect(repaired[0]?.[0]).toBe(JSON.stringify(given));
  });

  it.each<[string, InputSchema, Readonly<Record<string, unknown>>]>([
    ['an optional key', z.object({ a: z.string().nullish() }), { a: null }],
    ['a default', z.object({ a: z.string().nullable().default('x') }), { a: null }],
    ['JSON Schema', json({ properties: { a: { type: ['string', 'null'] } } }), { a: null }],
    ['no schema', json({ properties: { a: {} } }), { a: null }],
    ['a union', json({ properties: { a: { anyOf: [text_, { type: 'null' }] } } }), { a: null }],
    ['an enum', json({ properties: { a: { enum: ['x', null] } } }), { a: null }],
    ['a map', json({ additionalProperties: {} }), { a: null }],
    [
      'the alternative that the input means',
      json({
        properties: {
          it: { oneOf: [kind('a', { x: text_ }), kind('b', { x: { type: ['string', 'null'] } })] },
        },
      }),
      { it: { kind: 'b', x: null } },
    ],
  ])('is kept if the schema admits null: %s', async (_, schema, given) => {
    const { ran, repaired } = await played(schema, given);
    expect(ran).toEqual([given]);
    expect(repaired).toEqual([]);
  });

  it.each<[string, InputSchema, Readonly<Record<string, unknown>>, string]>([
    ['a required key', z.object({ a: z.string() }), { a: null }, 'a:'],
    ['an item of an array', z.object({ a: z.array(z.string()) }), { a: [null] }, 'a.0:'],
    [
      'an entry of a map',
      z.object({ a: z.record(z.string(), z.string()) }),
      { a: { b: null } },
      'a.b',
    ],
    [
      'a required key beside an optional one',
      json({ properties: { a: text_, b: text_ }, required: ['b'] }),
      { a: null, b: null },
      'b:',
    ],
    [
      'a key that each alternative requires',
      json({ anyOf: [{ properties: { a: text_ }, required: ['a'] }] }),
      { a: null },
      'a',
    ],
  ])('is an error of %s', async (_, schema, given, where) => {
    const { ran, repaired, results } = await played(schema, given);
    expect(ran).toEqual([]);
    expect(repaired).toEqual([]);
    expect(results).toMatchObject([{ isError: true }]);
    expect(JSON.stringify(results)).toContain(where);
  });

  it('is out of the tool call that is stored, shown and sent back', async () => {
    const schema = z.object({ a: z.string().optional(), b: z.number() });
    const { given, repaired } = await played(schema, { a: null, b: 1 });
    expect(given).toEqual([{ b: 1 }]);
    expect(repaired).toEqual([['{"a":null,"b":1}', '{"b":1}']]);
  });

  it('is dropped in structured output', async () => {
    const schema = z.object({ query: z.string(), limit: z.number().default(10) });
    const model = scriptedModel([text('{"query":"cats","limit":null}')]);
    const events = await record(createAgent({ model, use: [output(schema)] }).stream$('?'));
    expect(events.at(-1)).toMatchObject({ reply: { output: { query: 'cats', limit: 10 } } });
    expect(events.filter(({ type }) => type === 'repaired')).toMatchObject([
      { before: '{"query":"cats","limit":null}', after: '{"query":"cats"}' },
    ]);
  });

  it('does not override a preset', async () => {
    const ran: unknown[] = [];
    const find = tool({
      name: 'find',
      description: 'Finds.',
      input: z.object({ a: z.string(), b: z.string() }),
      run: (value) => {
        ran.push(value);
        return 'ok';
      },
    });
    const model = scriptedModel([toolCall('find', { a: null, b: 'b' })], [text('ok')]);
    const tools = [preset(find, { a: 'preset' }, { overridable: true })];
    await createAgent({ model, tools }).call('?');
    expect(ran).toEqual([{ a: 'preset', b: 'b' }]);
  });

  it('changes nothing but such nulls: a property', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const property = fc.record({
      isRequired: fc.boolean(),
      schema: fc.constantFrom(text_, { type: ['string', 'null'] }, {}, { enum: ['x'] }),
    });
    const schemas = fc.dictionary(key, property);
    const inputs = fc.dictionary(key, fc.constantFrom('x', null));
    await fc.assert(
      fc.asyncProperty(schemas, inputs, async (properties, given) => {
        const named = Object.entries(properties);
        const required = named.filter(([, it]) => it.isRequired).map(([name]) => name);
        const schema = json({
          properties: Object.fromEntries(named.map(([name, it]) => [name, it.schema])),
          required,
        });
        const admits = (name: string): boolean => {
          const own = properties[name]?.schema ?? {};
          return Object.keys(own).length === 0 || ('type' in own && Array.isArray(own.type));
        };
        const isNull = (name: string) => given[name] === null;
        const isBad = required.some((name) => !(name in given) || (isNull(name) && !admits(name)));
        const known = Object.entries(given).filter(([name]) => name in properties);
        const kept = known.filter(([name, it]) => it !== null || admits(name));
        const { ran, repaired } = await played(schema, given);
        expect(ran).toEqual(isBad ? [] : [Object.fromEntries(kept)]);
        expect(repaired).toHaveLength(isBad || kept.length === known.length ? 0 : 1);
      }),
    );
  });
});
