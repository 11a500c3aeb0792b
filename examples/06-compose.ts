// Agents are operators on messages, and the rest is RxJS.
import { createAgent, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { demoModel } from '@millrace/demo-model';
import { from, map, mergeMap, toArray } from 'rxjs';

const population = tool({
  name: 'population',
  description: 'Tells how many people live in a city.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string', enum: ['Oslo', 'Bergen'] } },
    required: ['city'],
    additionalProperties: false,
  }),
  run: ({ city }) => ({ Oslo: '709,000', Bergen: '291,000' })[city],
});

const counter = createAgent({ name: 'counter', model: demoModel(), tools: [population] });
const editor = createAgent({ name: 'editor', model: demoModel() });

// One after the other: the reply of the first is the message to the second, with the sender's name.
from(['How many people live in Oslo?'])
  .pipe(counter.asOperator(), editor.asOperator())
  .subscribe((reply) => console.log(`${reply.name}: ${textOf(reply).split('\n')[0]}`));

// Two at a time, and whatever else RxJS can do.
from(['Oslo', 'Bergen'])
  .pipe(
    mergeMap((city) => counter.call$(`How many people live in ${city}?`), 2),
    map(({ toolCalls }) => toolCalls[0]?.output),
    toArray(),
  )
  .subscribe((outputs) => console.log(outputs));
