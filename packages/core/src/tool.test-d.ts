import { expectTypeOf } from 'expect-type';
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
