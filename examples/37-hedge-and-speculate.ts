// A slow model is hedged with a second one, and a search starts while the message that calls it still streams.
import { createAgent, type ModelChunk, only, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { hedge, speculate } from '@millrace/gateway';
import { concatMap, delay, from, map, NEVER, of, timer } from 'rxjs';

/** One chunk every 20 ms. */
const slowly = (...chunks: readonly ModelChunk[]) =>
  from([...chunks, finish()]).pipe(concatMap((chunk) => of(chunk).pipe(delay(20))));

const search = tool({
  name: 'search',
  description: 'Searches the archive. Changes nothing.',
  input: jsonSchema({ type: 'object', properties: { query: { type: 'string' } } }),
  run: ({ query = '' }) => timer(20).pipe(map(() => `3 pages on ${query}`)),
});
const stuck = { ...scriptedModel(NEVER, slowly(text('Mills are old.'))), name: 'stuck' };
const backup = scriptedModel(
  slowly(
    toolCall('search', { query: 'mills' }),
    ...'I search the archive . . .'.split(' ').map(text),
  ),
);
const agent = createAgent({
  model: hedge(stuck, { ...backup, name: 'backup' }, { afterMs: 200 }),
  tools: [search],
  use: [speculate({ tools: ['search'] })],
});
agent.events$
  .pipe(only('modelHedged', 'modelFallback', 'speculation', 'postReasoning', 'postActing'))
  .subscribe((event) => {
    const status = event.type === 'speculation' ? event.status : '';
    console.log('to' in event ? `${event.type}: ${event.to}` : `${event.type} ${status}`.trim());
  });
console.log((await agent.call('How old are mills?')).text);
