// An agent from a JSON document: checked as a whole, drawn, and called like any other.
import { readFileSync } from 'node:fs';
import { textOf, tool } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { flowAgent, problemsIn, toMermaid } from '@millrace/flow';
import { z } from 'zod';

const document: unknown = JSON.parse(
  readFileSync(new URL('../20-flow.json', import.meta.url), 'utf8'),
);

const price = tool({
  name: 'price',
  description: 'The price of a sack of grain.',
  input: z.object({ grain: z.string() }),
  run: ({ grain }) => (grain === 'rye' ? '31 crowns' : 'unknown'),
});
const small = scriptedModel(
  [text('What turns the wheel?\nWhat does the wheel turn?')],
  [text('Water turns the wheel.')],
  [text('The wheel turns the stone.')],
);

const miller = flowAgent(document, { models: { small }, tools: [price] });
console.log(toMermaid(document));
console.log(textOf(await miller.call('What is the price of rye?')));
console.log(textOf(await miller.call('How does a mill work?')));

// A document with a mistake is told what, where, and what was probably meant.
const broken: unknown = JSON.parse(
  JSON.stringify(document).replace('"tool":"price"', '"tool":"prize"'),
);
for (const { path, problem, suggestion = '' } of problemsIn(broken, {
  models: { small },
  tools: [price],
})) {
  console.log(`${path}: ${problem}. ${suggestion}`);
}
