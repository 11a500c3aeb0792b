// Tool search: with hundreds of tools, the model sees one that searches the others, and loads what it needs.
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { searchTools } from '@millrace/tools';

const verbs = ['create', 'find', 'update', 'delete', 'list', 'export', 'archive', 'share'];
const things = ['invoice', 'order', 'parcel', 'refund', 'contract', 'meeting', 'ticket'];
const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } } });
const toolFor = (verb: string, thing: string) =>
  tool({
    name: `${verb}_${thing}`,
    description: `Tool to ${verb} one ${thing} of the shop.`,
    input,
    run: ({ id = 'all' }) => `${verb} ${thing} ${id}: done`,
  });
const tools = things.flatMap((thing) => verbs.map((verb) => toolFor(verb, thing)));

const model = scriptedModel(
  [toolCall('search_tools', { query: 'archive a contract' })],
  [toolCall('archive_contract', { id: '7' })],
  [text('Contract 7 is archived.')],
);
const agent = createAgent({ model, tools, use: [searchTools({ limit: 2 })] });
const reply = await agent.call('Please archive contract 7.');

console.log(tools.length, 'tools. The model saw:');
for (const { tools: shown = [] } of model.requests) {
  console.log('-', shown.map(({ name }) => name).join(', '));
}
for (const { name, output } of reply.toolCalls) console.log(name, '→', output);
console.log(reply.text);
