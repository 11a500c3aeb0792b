// Tools as an MCP server over HTTP. The client here is an agent; it could be any other program. Secrets in errors do not reach it.
import { createAgent, isEvent, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text as says, toolCall } from 'millrace/testing';
import { mcp } from '@millrace/mcp';
import { serveMcp } from '@millrace/mcp/server';
import { firstValueFrom, ReplaySubject } from 'rxjs';

const stock = tool({
  name: 'stock',
  description: 'The number of articles in stock.',
  input: jsonSchema({
    type: 'object',
    properties: { article: { type: 'string' } },
    required: ['article'],
  }),
  run: function* ({ article }) {
    yield `counting ${article}`;
    if (article === 'gold') throw new Error('postgres://shop:secret@db: no such table');
    return 3;
  },
});
const address$ = new ReplaySubject<string>(1);
const serving = serveMcp([stock], { name: 'shop', http: { port: 0 } }).subscribe((it) =>
  address$.next(it.transport === 'http' ? it.url : ''),
);

const shop = mcp({ name: 'shop', http: { url: await firstValueFrom(address$) } });
const model = scriptedModel(
  [toolCall('shop_stock', { article: 'lamps' })],
  [toolCall('shop_stock', { article: 'gold' })],
  [says('There are 3 lamps.')],
);
for await (const event of createAgent({ model, use: [shop] }).stream('How many lamps and gold?')) {
  if (isEvent(event, 'actingChunk')) console.log('progress:', event.value);
  if (isEvent(event, 'postActing')) console.log(textOf(event.result));
  if (isEvent(event, 'postCall')) console.log(textOf(event.reply));
}
serving.unsubscribe();
