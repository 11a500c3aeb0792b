// The same tools and queries as tool-search.mjs with Mastra 1.71.0. Copy the folder `measure`, `npm install @mastra/core zod` beside it, and run it.
import console from 'node:console';
import { readFileSync } from 'node:fs';
import { URL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { ToolSearchProcessor } from '@mastra/core/processors';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';

const read = (name) => readFileSync(new URL(name, import.meta.url));
const tools = JSON.parse(gunzipSync(read('mcp-tools.json.gz')).toString())
  .flatMap(({ server, tools: own }) => own.map((it) => ({ ...it, id: `${server}_${it.name}` })))
  .map(({ id, name, description }) =>
    createTool({
      id,
      description: description || name,
      inputSchema: z.looseObject({}),
      execute: () => 'ran',
    }),
  );
const queries = read('tool-queries.txt')
  .toString()
  .split('\n')
  .filter((line) => line.includes('|'))
  .map((line) => line.split('|').map((it) => it.trim()))
  .map(([query, names]) => ({ query, names: names.split(', ') }));

const processor = new ToolSearchProcessor({
  tools: Object.fromEntries(tools.map((it) => [it.id, it])),
  search: { topK: 5 },
});
const messageList = {
  addSystem: () => undefined,
  getSystemMessages: () => [],
  get: { all: { db: () => [] } },
};
const requestContext = { get: () => undefined, set: () => undefined };
const step = { tools: {}, messages: [], systemMessages: [], steps: [], stepNumber: 0, state: {} };
const shown = await processor.processInputStep({ ...step, messageList, requestContext });
let hits = 0;
for (const { query, names } of queries) {
  const { results } = await shown.tools.search_tools.execute({ query }, {});
  if (results.some(({ name }) => names.includes(name))) hits += 1;
}
console.log(`${tools.length} tools: a right one among five for ${hits} of ${queries.length}.`);
