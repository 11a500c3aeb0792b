import { createAgent, type Model, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, text } from 'millrace/testing';
import { of } from 'rxjs';

/** Stands in for a model of a provider. */
export const model: Model = { name: 'greeter', stream$: () => of(text('Hello Ann.'), finish()) };

export const agent = createAgent({ name: 'helper', model });

export const pay = tool({
  name: 'pay',
  description: 'Pays a bill.',
  input: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } }),
  run: () => 'Paid.',
});
