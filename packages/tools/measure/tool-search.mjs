// How well `searchTools` finds one of 500 tools, and what it saves: `node packages/tools/measure/tool-search.mjs [--misses]`, after
// `npm run build`. The tools are those of 20 MCP servers of npm (mcp-tools.json.gz has their packages, versions and licences), as they list
// them over stdio; tool-queries.txt has 100 queries with the right tools.
import console from 'node:console';
import { readFileSync } from 'node:fs';
import { URL } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { searchTools } from '@millrace/tools';
import { offlineEmbedder } from '@millrace/tools/documents';

const { values } = parseArgs({ options: { misses: { type: 'boolean', default: false } } });
const read = (name) => readFileSync(new URL(name, import.meta.url));
const servers = JSON.parse(gunzipSync(read('mcp-tools.json.gz')).toString());
const queries = read('tool-queries.txt')
  .toString()
  .split('\n')
  .filter((line) => line.includes('|'))
  .map((line) => line.split('|').map((it) => it.trim()))
  .map(([query, names]) => ({ query, names: names.split(', ') }));

const tools = servers.flatMap(({ server, tools: own }) =>
  own.map(({ name, description = '', inputSchema }) =>
    tool({
      name: `${server}_${name}`,
      description: description || name,
      input: jsonSchema(inputSchema),
      run: () => 'ran',
    }),
  ),
);
const known = new Set(tools.map(({ name }) => name));
for (const { names } of queries) {
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) throw new Error(`There is no tool '${unknown}'.`);
}

const play = async (use, script) => {
  const model = scriptedModel(...script, [text('Done.')]);
  const agent = createAgent({ model, tools, use, limits: { maxIterations: 200 } });
  const { toolCalls } = await agent.call('Go on.');
  return { requests: model.requests, toolCalls };
};
const tokensOf = ({ tools: shown = [] }) =>
  encode(
    JSON.stringify(
      shown.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    ),
  ).length;

const whole = await play([], []);
const searched = await play(
  [searchTools()],
  [[toolCall('search_tools', { query: 'create an issue' })]],
);
console.log(`${tools.length} tools of ${servers.length} servers.`);
console.log(
  `Tokens of the tools in the first request: ${tokensOf(whole.requests[0])} with all, ${tokensOf(searched.requests[0])} with searchTools, ${tokensOf(searched.requests[1])} after one search (o200k).`,
);

for (const [name, options] of [
  ['words', {}],
  ['words and meaning', { embedder: offlineEmbedder() }],
]) {
  const script = queries.map(({ query }) => [toolCall('search_tools', { query })]);
  const { toolCalls } = await play([searchTools(options)], script);
  const found = toolCalls.map(
    ({ output }) => /^Loaded: (.*)\. You can/.exec(output)?.[1].split(', ') ?? [],
  );
  const hitsAt = (count) =>
    queries.filter(({ names }, index) =>
      found[index].slice(0, count).some((it) => names.includes(it)),
    ).length;
  console.log(
    `${name}: hits@1 ${hitsAt(1)}, hits@3 ${hitsAt(3)}, hits@5 ${hitsAt(5)} of ${queries.length}`,
  );
  if (!values.misses) continue;
  queries.forEach(({ query, names }, index) => {
    if (!found[index].some((it) => names.includes(it)))
      console.log(`  ${query} → ${found[index].join(', ')}`);
  });
}
