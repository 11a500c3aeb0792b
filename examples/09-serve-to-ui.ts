// One agent, two protocols: a call goes no faster than its socket takes it, and ends when its client leaves.
import { serve } from '@hono/node-server';
import { createAgent } from 'millrace';
import { sessions } from 'millrace/sessions';
import { demoModel } from '@millrace/demo-model';
import {
  agUiResponse,
  inputOfAgUi,
  inputOfUiMessages,
  uiMessageStreamResponse,
} from '@millrace/server';
import { Hono } from 'hono';

const chats = sessions(createAgent({ model: demoModel() }));
const app = new Hono();

// What `useChat` of the AI SDK asks, and what it reads.
app.post('/chat', async ({ req }) => {
  const { input, chatId, ...run } = inputOfUiMessages(await req.json());
  return uiMessageStreamResponse((demand) => chats.open(chatId).stream$(input, { demand }), run);
});

// What `HttpAgent` of AG-UI asks, and what it reads.
app.post('/ag-ui', async ({ req }) => {
  const { input, ...run } = inputOfAgUi(await req.json());
  return agUiResponse((demand) => chats.open(run.threadId).stream$(input, { demand }), run);
});

const ask = async (port: number): Promise<void> => {
  const question = { role: 'user', content: 'Hello!', parts: [{ type: 'text', text: 'Hello!' }] };
  const body = JSON.stringify({ id: 'a', threadId: 'a', runId: 'b', messages: [question] });
  for (const route of ['chat', 'ag-ui']) {
    const response = await fetch(`http://127.0.0.1:${port}/${route}`, { method: 'POST', body });
    const types = (await response.text()).match(/(?<="type":")[\w-]+/g) ?? [];
    console.log(`${route}:`, [...new Set(types)].join(' '));
  }
  server.close();
};
const address = { hostname: '127.0.0.1', port: 0 };
const server = serve({ fetch: app.fetch, ...address }, ({ port }) => void ask(port));
