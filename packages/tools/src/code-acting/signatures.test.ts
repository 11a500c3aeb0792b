import { expect, it } from '@jest/globals';
import { tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { signaturesOf } from './signatures.js';

const signatureOf = (schema: object, name = 'act'): string =>
  signaturesOf([{ ...plain, name, inputSchema: { ...schema } }], 5_000);

const plain = tool({ name: 'plain', description: 'Acts\n at once.', run: () => '' });

it('describes a tool without parameters', () => {
  expect(signaturesOf([plain], 1_000)).toBe('tools.plain() // Acts at once.');
  expect(signatureOf({ type: 'object' }, 'get-all')).toBe('tools["get-all"]() // Acts at once.');
});

it.each([
  [{ type: 'string' }, 'string'],
  [{ type: 'integer' }, 'number'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ enum: ['a', 5, null] }, '"a" | 5 | null'],
  [{ const: 'a' }, '"a"'],
  [{ type: 'array', items: { type: 'number' } }, 'number[]'],
  [{ type: 'array', items: { enum: ['a', 'b'] } }, '("a" | "b")[]'],
  [
    { type: 'array', items: { type: 'object', properties: { 'a-b': {} } } },
    '{ "a-b"?: unknown }[]',
  ],
  [{ anyOf: [{ type: 'string' }, { type: 'boolean' }] }, 'string | boolean'],
  [{ type: 'object', additionalProperties: { type: 'number' } }, 'Record<string, number>'],
  [{ $ref: '#/$defs/point' }, '{ x: number }'],
  [{ $ref: 'https://example.com/x' }, 'unknown'],
  [{ type: 'string', description: 'A */ b\nc.' }, 'string /* A * / b c. */'],
  [{ $ref: '#/$defs/list' }, expect.stringMatching(/^\{ next\?: \{ next\?: .*unknown/u)],
  [true, 'unknown'],
])('shows %j as %p', (schema, expected) => {
  const point = { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] };
  const list = { type: 'object', properties: { next: { $ref: '#/$defs/list' } } };
  const shown = signatureOf({
    type: 'object',
    properties: { it: schema },
    required: ['it'],
    $defs: { point, list },
  });
  expect(/^tools\.act\(input: \{ it: (.*) \}\) \/\/ Acts/u.exec(shown)?.[1]).toEqual(expected);
});

it('marks optional parameters, and names the tools that have no room', () => {
  const input = jsonSchema({
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'number' } },
    required: ['a'],
  });
  const tools = ['one', 'two', 'three'].map((name) =>
    tool({ name, description: 'Acts.', input, run: () => '' }),
  );
  expect(signaturesOf(tools, 60).split('\n')).toEqual([
    'tools.one(input: { a: string; b?: number }) // Acts.',
    'Also tools.two, tools.three: call one without parameters to see its errors.',
  ]);
});
