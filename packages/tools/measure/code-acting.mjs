// Compares plain tool calls with code acting for tasks of 20 tool calls, with models that play scripts: turns, tokens
// of all requests and answers, and time. Tokens are estimated as characters / 4, without the cache of a provider.
//   node packages/tools/measure/code-acting.mjs
import console from 'node:console';
import { performance } from 'node:perf_hooks';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { codeActing } from '@millrace/tools/code-acting';

const count = 20;
const row = (id) => ({ id, next: id + 1, price: id * 3, description: 'x'.repeat(800) });
const get = tool({
  name: 'get_item',
  description: 'Returns an item of the catalogue by its id, with the id of the next one.',
  input: jsonSchema({
    type: 'object',
    properties: { id: { type: 'integer', description: 'The id of the item.' } },
    required: ['id'],
    additionalProperties: false,
  }),
  run: ({ id }) => row(id),
});

const answer = [text('The sum of the prices is 570.')];
const ids = Array.from({ length: count }, (_, id) => id);
const tasks = {
  'dependent, plain': ids.map((id) => [toolCall('get_item', { id })]),
  'dependent, code': [
    [
      toolCall('run_javascript', {
        code: `let id = 0, sum = 0;
for (let n = 0; n < ${count}; n += 1) {
  const item = await tools.get_item({ id });
  sum += item.price;
  id = item.next;
}
return sum;`,
      }),
    ],
  ],
  'parallel, plain': [ids.map((id) => toolCall('get_item', { id }))],
  'parallel, code': [
    [
      toolCall('run_javascript', {
        code: `const ids = Array.from({ length: ${count} }, (_, id) => id);
const items = await Promise.all(ids.map((id) => tools.get_item({ id })));
return items.reduce((sum, { price }) => sum + price, 0);`,
      }),
    ],
  ],
};

const tokens = (value) => Math.ceil(JSON.stringify(value).length / 4);

const measure = async ([task, script]) => {
  const model = scriptedModel(...script, answer);
  const use = task.endsWith('code') ? [codeActing()] : [];
  const limits = { maxIterations: count + 5 };
  const agent = createAgent({ model, tools: [get], use, limits });
  const begun = performance.now();
  await agent.call('What is the sum of the prices of the first 20 items?');
  const ms = Math.round(performance.now() - begun);
  const results = JSON.stringify(model.requests.at(-1).messages);
  if (task.endsWith('code') && !results.includes('"570"')) throw new Error(results);
  const input = model.requests.reduce(
    (sum, { system = '', messages, tools }) =>
      sum + tokens(system) + tokens(messages) + tokens(tools),
    0,
  );
  const output = [...script, answer].reduce((sum, chunks) => sum + tokens(chunks), 0);
  return { task, turns: model.requests.length, 'input tokens': input, 'output tokens': output, ms };
};

const rows = [];
for (const each of Object.entries(tasks)) rows.push(await measure(each));
console.table(rows);
