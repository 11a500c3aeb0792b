import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent, output, tool } from '../index.js';
import type { Validation } from '../values/schema.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { jsonSchema } from './index.js';
import { bothVerdictsOn, withoutCode } from './validate.test-support.js';

const drafts = [
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2019-09/schema',
  'http://json-schema.org/draft-07/schema#',
];

/** Rules for one parameter, as schemas of tools have them. */
const rule: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  rule: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(
      true,
      { type: 'string' },
      { type: ['string', 'null'] },
      { type: 'integer', minimum: 1, maximum: 3 },
      { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 2 },
      { type: 'number', multipleOf: 2 },
      { type: 'boolean' },
      { enum: ['a', 1, null, { a: 1 }] },
      { const: 'a' },
      { const: { a: [1] } },
      { type: 'string', minLength: 1, maxLength: 2, format: 'email' },
      { type: 'string', pattern: '^[a-b-.]+$' },
      { not: { type: 'string' } },
      { type: 'array', minItems: 1, maxItems: 2, uniqueItems: true },
      { type: 'array', contains: { type: 'string' } },
      { type: 'object', minProperties: 1, maxProperties: 2 },
      { type: 'object', dependentRequired: { a: ['b', 'c'] } },
      { type: 'object', dependencies: { a: ['b'], b: { required: ['c'] } } },
      { type: 'object', propertyNames: { enum: ['a', 'b'] } },
      { $ref: '#/properties/b' },
      { $ref: '#/definitions/list' },
    ),
    fc.record({
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('rule'), {
        noNullPrototype: true,
      }),
      required: fc.constantFrom([], ['a'], ['c', 'a']),
      additionalProperties: fc.constantFrom<unknown>(true, false, { type: 'string' }),
    }),
    fc.record({
      patternProperties: fc.record({ '^[ab]$': tie('rule') }),
      additionalProperties: fc.boolean(),
    }),
    fc.record({ type: fc.constant('array'), items: tie('rule') }),
    fc.record({ anyOf: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ allOf: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ if: tie('rule'), then: tie('rule'), else: tie('rule') }),
  ),
})).rule;

const inputs = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>('', 'a', 'b', 'abc', 'ü', 0, 1, 2, 4, 1.5, -1, true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd/~e', '$ref'), tie('value'), {
      noNullPrototype: true,
    }),
  ),
}));

/** ajv looks at no more alternatives of `oneOf` once two fit, and of many problems the first are told. */
const inAnyOrder = (validation: Validation): Validation => {
  if (validation.valid) return validation;
  const { problems } = validation;
  const areSome = problems.some((it) => it.includes('in oneOf') || /^and \d+ more$/.test(it));
  return { valid: false, problems: areSome ? [] : [...problems].sort() };
};

const isIn = (value: unknown, text: string): boolean => JSON.stringify(value).includes(text);

describe('X20: if no code can be compiled', () => {
  it('an input is valid if it is valid elsewhere, and otherwise has the same problems', async () => {
    const schemas = fc.record({
      $schema: fc.constantFrom(...drafts),
      type: fc.constant('object'),
      properties: fc.record(
        { a: rule, b: fc.constantFrom({ type: 'string' }, { minimum: 2 }), c: rule },
        { requiredKeys: ['b'] },
      ),
      required: fc.constantFrom([], ['a'], ['b', 'c']),
      definitions: fc.constant({ list: { type: 'array', items: { $ref: '#/properties/b' } } }),
    });
    const input = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), inputs.value, {
      noNullPrototype: true,
    });
    await fc.assert(
      fc.asyncProperty(schemas, input, async (schema, given) => {
        // Behind another list, ajv takes an empty one for one that contains what the other contained.
        fc.pre(!(isIn(schema, '"contains"') && isIn(given, '[]')));
        const [expected, found] = (await bothVerdictsOn(schema, given)).map(inAnyOrder);
        expect(found).toEqual(expected);
      }),
    );
  });

  const input = {
    type: 'object',
    properties: { nights: { type: 'integer', minimum: 1 }, room: { enum: ['single', 'double'] } },
    required: ['nights', 'room'],
  } as const;
  const book = (more: object = {}) =>
    tool({
      name: 'book',
      description: 'Books.',
      input: jsonSchema({ ...input, ...more }),
      run: () => 'booked',
    });

  it('X20: a tool and the output of a call work', async () => {
    const model = scriptedModel(
      [toolCall('book', { nights: 0 }), toolCall('book', { nights: 2, room: 'single' })],
      [text('{"nights":"two"}')],
      [text('{"nights":2,"room":"double"}')],
    );
    const agent = withoutCode(() =>
      createAgent({ model, tools: [book()], use: [output(jsonSchema(input))] }),
    );
    const reply = await agent.call('?');
    expect(reply.toolCalls.map((it) => it.output)).toEqual([
      'The arguments for book are invalid:\n- room: is required, but missing\n- nights: must be >= 1 (received 0)',
      'booked',
    ]);
    expect(reply.output).toEqual({ nights: 2, room: 'double' });
  });

  it('X13: what would take too long is given up', async () => {
    const node = { properties: { child: { $ref: '#/$defs/node' } } };
    const $defs = {
      node: { anyOf: [{ ...node, required: ['a'] }, { ...node, required: ['b'] }, node] },
    };
    const tree = (levels: number): object =>
      levels === 0 ? { child: 1 } : { child: tree(levels - 1) };
    const schema = { type: 'object', properties: { tree: { $ref: '#/$defs/node' } }, $defs };
    const [, deep] = await bothVerdictsOn(schema, { tree: tree(60) });
    const problems = ['the input: is too complex to check'];
    expect(deep).toEqual({ valid: false, problems });
    const list = { type: 'object', properties: { list: { type: 'array', uniqueItems: true } } };
    const many = { list: Array.from({ length: 5_000 }, (_, n) => n) };
    const [compiled, interpreted] = await bothVerdictsOn(list, many);
    expect(compiled).toMatchObject({ valid: true });
    expect(interpreted).toEqual({ valid: false, problems });
  });
});
