import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import { expectTypeOf } from 'expect-type';
import Type from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
import { tool } from './tool.js';
import { jsonSchema } from '../schema/index.js';

tool({
  name: 'typed-by-json-schema',
  description: 'Its arguments are typed by the literal schema.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string; days?: number }>();
  },
});

tool({
  name: 'typed-by-zod',
  description: 'Its arguments are what the schema makes of the input.',
  input: z.object({ when: z.iso.date(), count: z.number().default(1) }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ when: string; count: number }>();
  },
});

tool({
  name: 'typed-by-typebox',
  description: 'Its arguments are typed by the schema.',
  input: jsonSchema(Type.Object({ city: Type.String(), days: Type.Optional(Type.Number()) })),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string; days?: number }>();
  },
});

tool({
  name: 'typed-by-valibot',
  description: 'Its arguments are what the schema makes of the input.',
  input: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 1) })),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string; days: number }>();
  },
});

tool({
  name: 'typed-by-arktype',
  description: 'Its arguments are what the schema makes of the input.',
  input: type({ city: 'string', 'days?': 'number' }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string; days?: number }>();
  },
});

tool({
  name: 'exact',
  description:
    'Keys that the schema does not name are left out of its arguments, and of their type.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string }>();
  },
});

tool({
  name: 'open',
  description: 'It takes further keys.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    additionalProperties: { type: 'number' },
  }),
  run: (input) => {
    expectTypeOf(input['days']).toEqualTypeOf<unknown>();
  },
});

// T1, T5: the type is that of the value which pruning leaves.
tool({
  name: 'exact-below',
  description: 'Keys that the schema does not name are left out of the objects within it, too.',
  input: jsonSchema({
    type: 'object',
    properties: {
      place: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      stops: { type: 'array', items: { type: 'object', properties: { day: { type: 'integer' } } } },
      none: { type: ['object', 'null'], properties: { id: { type: 'string' } } },
      open: { type: 'object', properties: { a: {} }, patternProperties: { '^x': {} } },
    },
    required: ['place', 'open'],
  }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{
      place: { city: string };
      stops?: { day?: number }[];
      none?: { id?: string } | null;
      open: { [key: string]: unknown; a?: unknown };
    }>();
  },
});

// T1: a default is not filled in.
tool({
  name: 'default',
  description: 'It may not be given what it has a default for.',
  input: jsonSchema({
    type: 'object',
    properties: {
      n: { type: 'integer', default: 5 },
      m: { type: 'integer', default: 5 },
      below: { type: 'object', properties: { n: { type: 'integer', default: 5 } } },
    },
    required: ['m'],
  }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ n?: number; m: number; below?: { n?: number } }>();
  },
});

// T1: a list by its first items.
tool({
  name: 'tuples',
  description: 'It takes lists whose first items are of a kind.',
  input: jsonSchema({
    type: 'object',
    properties: {
      pair: {
        type: 'array',
        prefixItems: [{ type: 'string' }, { type: 'number' }],
        items: false,
        minItems: 2,
      },
      short: { type: 'array', prefixItems: [{ type: 'string' }], items: false },
      more: {
        type: 'array',
        prefixItems: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }],
        items: { type: 'number' },
        minItems: 1,
      },
      any: { type: 'array', prefixItems: [{ type: 'string' }], minItems: 1 },
    },
    required: ['pair', 'short', 'more', 'any'],
  }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{
      pair: [string, number];
      short: [] | [string];
      more: [{ a: string }] | [{ a: string }, ...number[]];
      any: [string] | [string, ...unknown[]];
    }>();
  },
});

// T5: what is required is not pruned, though nothing says what it is.
tool({
  name: 'required',
  description: 'It requires what it does not name.',
  input: jsonSchema({ type: 'object', properties: { a: { type: 'string' } }, required: ['b'] }),
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ a?: string; b: unknown }>();
  },
});

// X13: an object beside a reference is left whole.
tool({
  name: 'recursive',
  description: 'It takes a tree.',
  input: jsonSchema({
    $schema: 'https://json-schema.org/draft/2019-09/schema',
    type: 'object',
    properties: {
      child: { type: 'object', properties: { extra: { type: 'string' } }, $recursiveRef: '#' },
    },
    required: ['child'],
  }),
  run: ({ child }) => {
    expectTypeOf(child['name']).toEqualTypeOf<unknown>();
    expectTypeOf(child.extra).toEqualTypeOf<string | undefined>();
  },
});

tool({
  name: 'without-parameters',
  description: 'It takes nothing.',
  run: (input) => Object.keys(input).length,
});

// @ts-expect-error a tool needs a name
tool({ description: 'Nameless.', run: () => 1 });

tool({
  name: 'wrong-field',
  description: 'It reads what its schema does not have.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    additionalProperties: false,
  }),
  // @ts-expect-error the schema has no country
  run: ({ country }) => String(country),
});
