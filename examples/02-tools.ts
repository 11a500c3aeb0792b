// Tools are functions with a schema; what the schema says types the arguments.
import { createAgent, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { demoModel } from '@millrace/demo-model';
import { z } from 'zod';

const stock = tool({
  name: 'stock',
  description: 'Tells how many pieces of a product are in stock.',
  input: jsonSchema({
    type: 'object',
    properties: {
      product: { type: 'string', enum: ['bolt', 'nut', 'washer'], description: 'The product' },
    },
    required: ['product'],
    additionalProperties: false,
  }),
  run: ({ product }) => ({ bolt: 1200, nut: 950, washer: 0 })[product],
});

const shipping = tool({
  name: 'shipping',
  description: 'Tells what shipping a parcel of some weight costs.',
  input: z.object({
    kilograms: z.number().positive().describe('Weight in kilograms, such as 2.5'),
  }),
  run: async ({ kilograms }) => Promise.resolve(`${(4 + kilograms * 1.5).toFixed(2)} EUR`),
});

const agent = createAgent({ model: demoModel(), tools: [stock, shipping] });
const reply = await agent.call(
  'How many bolts are in stock, and what does shipping 3 kilograms cost?',
);

for (const { name, input, output } of reply.toolCalls) console.log(name, input, '→', output);
console.log(textOf(reply));
