// Prints, as JSON, the functions of the packages that a call enters, in order, from `agent.call` until its request is sent.
import { register } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../workspaces.mjs';

register('./trip-hooks.mjs', import.meta.url);
const load = (file) => import(pathToFileURL(join(root, 'packages', file)));

const chunk = (delta, finish = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const body = chunk({ content: 'Yes.' }) + chunk({}, 'stop') + 'data: [DONE]\n\n';
const headers = { 'content-type': 'text/event-stream' };

async function trip() {
  const { createAgent, tool } = await load('millrace/dist/index.js');
  const { jsonSchema } = await load('millrace/dist/schema/index.js');
  const { openai } = await load('openai/dist/index.js');
  const entries = [];
  const fetch = () => {
    globalThis.entered = undefined;
    return Promise.resolve(new Response(body, { headers }));
  };
  const lookup = tool({
    name: 'lookup',
    description: 'Looks up a word',
    input: jsonSchema({
      type: 'object',
      properties: { word: { type: 'string' } },
      required: ['word'],
    }),
    run: () => 'A stream that turns a mill.',
  });
  const agent = createAgent({ model: openai('m', { apiKey: 'none', fetch }), tools: [lookup] });
  await agent.call('What is a millrace?');
  globalThis.entered = (file, name) => entries.push([file, name]);
  const reply = await agent.call('What is a millrace?');
  globalThis.entered = undefined;
  if (reply.reason !== 'answer') throw new Error(`The call ended with '${reply.reason}'.`);
  return entries;
}

process.stdout.write(JSON.stringify(await trip()));
