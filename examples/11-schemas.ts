// One tool, its parameters said in five ways: each types the arguments of `run`, and is held to.
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import { Type } from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';

const zod = z.object({ to: z.string(), kilograms: z.number() });
const valibot = toStandardJsonSchema(v.object({ to: v.string(), kilograms: v.number() }));
const arktype = type({ to: 'string', kilograms: 'number' });
const typebox = jsonSchema(Type.Object({ to: Type.String(), kilograms: Type.Number() }));
const properties = { to: { type: 'string' }, kilograms: { type: 'number' } } as const;
const json = jsonSchema({ type: 'object', properties, required: ['to', 'kilograms'] });

interface Parcel {
  to: string;
  kilograms: number;
}
// Checked by the compiler: it takes a Parcel, nothing wider or narrower, and no `any`.
type Exactly<A, B> = 0 extends 1 & A[keyof A] ? never : B extends A ? A : never;
const cost = <Given extends Parcel>({ to, kilograms }: Exactly<Given, Parcel>) =>
  `${to}: ${4 + kilograms * 1.5} EUR`;

const tools = [
  tool({ name: 'zod', description: 'Ships.', input: zod, run: (parcel) => cost(parcel) }),
  tool({ name: 'valibot', description: 'Ships.', input: valibot, run: (parcel) => cost(parcel) }),
  tool({ name: 'arktype', description: 'Ships.', input: arktype, run: (parcel) => cost(parcel) }),
  tool({ name: 'typebox', description: 'Ships.', input: typebox, run: (parcel) => cost(parcel) }),
  tool({ name: 'json', description: 'Ships.', input: json, run: (parcel) => cost(parcel) }),
];

const useAll = (kilograms: unknown) =>
  tools.map(({ name }) => toolCall(name, { to: 'Oslo', kilograms }));
const model = scriptedModel(useAll(2), useAll('heavy'), [text('7 EUR.')]);
const { toolCalls } = await createAgent({ model, tools }).call('What does it cost to Oslo?');
for (const { name, output } of toolCalls) console.log(name, '→', output.split('\n').at(-1));
