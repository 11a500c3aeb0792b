// An agent that searches the web, reads a page and cites it: with keys, by Tavily and OpenAI; without, offline by a script.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createAgent, textOf } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { openai } from '@millrace/openai';
import { fetchPage } from '@millrace/tools/web';
import { webSearch } from '@millrace/tools-extra';

const page = '<title>Mills</title><main><p>The wheel turns 12 times a minute.</p></main>';
const server = createServer((request, response) => {
  const results = [{ title: 'Mills', url: `${origin}/mills`, content: 'All about mills.' }];
  if (request.url === '/search') response.end(JSON.stringify({ results }));
  else response.setHeader('content-type', 'text/html').end(page);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
const origin = `http://127.0.0.1:${port}`;
const script = scriptedModel(
  [toolCall('web_search', { query: 'speed of a mill wheel' })],
  [toolCall('fetch_page', { url: `${origin}/mills` })],
  [text(`12 turns a minute (${origin}/mills), some say 15 (https://nowhere.example).`)],
);
const isOnline = ['TAVILY_API_KEY', 'OPENAI_API_KEY'].every((name) => name in process.env);
const local = { apiKey: 'none', baseURL: origin };
const search = webSearch({ provider: 'tavily', ...(isOnline ? {} : local) });
const read = fetchPage(isOnline ? {} : { allowPrivate: ['127.0.0.1'], ports: [port] });
const model = isOnline ? openai('gpt-5-mini') : script;
const instructions = 'Search, read what you found, and cite the URL of each fact.';
const agent = createAgent({ model, tools: [search, read], instructions });
const reply = await agent.call('How fast is a mill wheel?');
const shown = (it: string): string => it.replaceAll(`${port}`, '…');
const pages = reply.toolCalls.filter(({ name }) => name === 'fetch_page');
console.log(shown(textOf(reply)));
for (const [url] of textOf(reply).matchAll(/https?:\/\/[^\s)]+/g)) {
  console.log(shown(url), pages.some((it) => it.output.includes(url)) ? 'was read' : 'was not');
}
server.close();
