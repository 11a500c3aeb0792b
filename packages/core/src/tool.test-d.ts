import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import { expectTypeOf } from 'expect-type';
import Type from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
import { tool } from './tool.js';

tool({
  name: 'typed-by-json-schema',
  description: 'Its arguments are typed by the literal schema.',
  input: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  },
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
  input: Type.Object({ city: Type.String(), days: Type.Optional(Type.Number()) }),
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
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: (input) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string }>();
  },
});

tool({
  name: 'open',
  description: 'It takes further keys.',
  input: {
    type: 'object',
    properties: { city: { type: 'string' } },
    additionalProperties: { type: 'number' },
  },
  run: (input) => {
    expectTypeOf(input['days']).toEqualTypeOf<unknown>();
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
  input: { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false },
  // @ts-expect-error the schema has no country
  run: ({ country }) => String(country),
});
