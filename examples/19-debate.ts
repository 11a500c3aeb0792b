// Two agents debate, each hears the other, and a judge decides: as one agent.
import { createAgent, only, output, textOf } from 'millrace';
import { asAgent, debate } from 'millrace/teams';
import * as script from 'millrace/testing';
import { z } from 'zod';

// What the models will say, so that this runs offline: put your own model in their places.
const saying = (...words: readonly string[]) =>
  script.scriptedModel(...words.map((it) => [script.text(it)]));

const water = createAgent({
  name: 'water',
  instructions: 'You speak for a water wheel. Answer what the other side says.',
  model: saying('The brook is there day and night.', 'A pond keeps water for summer.'),
});
const wind = createAgent({
  name: 'wind',
  instructions: 'You speak for a windmill. Answer what the other side says.',
  model: saying('In summer it is dry.', 'A pond floods the best field.'),
});
const judge = createAgent({
  name: 'judge',
  instructions: 'Say which side has made its case, and why.',
  model: saying('{"winner":"water","why":"A field can be spared, and calm days cannot."}'),
  use: [output(z.object({ winner: z.enum(['water', 'wind']), why: z.string() }))],
});

const council = asAgent(debate({ agents: [water, wind], rounds: 2, judge }), { name: 'council' });
council.events$
  .pipe(only('postCall'))
  .subscribe(({ agent, reply }) => console.log(`${agent.join('/')}: ${textOf(reply)}`));

const reply = await council.call('What is to drive our mill?');
console.log('Winner:', reply.output?.winner);
