// A schema types the reply, and the model is held to it; the object shows itself while it is written.
import { createAgent, type ModelChunk, only, output, partialOutput$ } from 'millrace';
import { finish, scriptedModel, text } from 'millrace/testing';
import { concatMap, delay, from, of } from 'rxjs';
import { z } from 'zod';

const recipe = z.object({
  name: z.string(),
  minutes: z.number().max(10),
  steps: z.array(z.string()),
});

// Stands for a model of any vendor: its first answer breaks the schema, so it is asked again.
const slowly = (...chunks: readonly ModelChunk[]) =>
  from([...chunks, finish()]).pipe(concatMap((chunk) => of(chunk).pipe(delay(20))));
const model = scriptedModel(
  [text('{"name":"Stew","minutes":180,"steps":["Wait."]}')],
  slowly(text('{"name":"Toast",'), text('"minutes":3,"steps":["Cut.",'), text('"Toast."]}')),
);

const agent = createAgent({ model, use: [output(recipe)] });

agent.events$
  .pipe(only('messageDiscarded'))
  .subscribe(({ why }) => console.log('Not this one:', why.split('\n').at(-1)));
partialOutput$<z.input<typeof recipe>>(agent.events$, { everyMs: 1 }).subscribe((soFar) =>
  console.log('So far:', JSON.stringify(soFar)),
);

const reply = await agent.call('What can I cook in ten minutes?');
if (reply.output) console.log(`${reply.output.name}: ${reply.output.minutes} minutes.`);
