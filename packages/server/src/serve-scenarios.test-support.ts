import { serve } from '@hono/node-server';
import { HttpAgent } from '@ag-ui/client';
import { type AgentEvent, type Demand, type Input, isMillraceError } from 'millrace';
import { DefaultChatTransport, type UIMessageChunk } from 'ai';
import { Hono } from 'hono';
import { once } from 'node:events';
import type { Observable } from 'rxjs';
import { agUiResponse, inputOfAgUi, inputOfUiMessages, uiMessageStreamResponse } from './index.js';
import { installed } from './read-as-client.test-support.js';

/** Makes the call that a client asked for. */
export type Answer = (input: string, demand: Demand) => Observable<AgentEvent>;

const asText = (input: Input): string => (typeof input === 'string' ? input : '');

const appFor = (answer: Answer): Hono => {
  const app = new Hono();
  app.post('/chat', async ({ req }) => {
    const { input } = inputOfUiMessages(await req.json());
    const target = await installed();
    return uiMessageStreamResponse((demand) => answer(asText(input), demand), { target });
  });
  app.post('/ag-ui', async ({ req }) => {
    const { input, ...run } = inputOfAgUi(await req.json());
    return agUiResponse((demand) => answer(asText(input), demand), run);
  });
  app.onError((error, context) =>
    context.json({ error: isMillraceError(error) ? error.userMessage : 'broken' }, 400),
  );
  return app;
};

/** Serves both protocols on a free port of this machine while the test lasts. */
export const serving = async <T>(answer: Answer, test: (url: string) => Promise<T>): Promise<T> => {
  const { fetch } = appFor(answer);
  const server = serve({ fetch, hostname: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  try {
    return await test(`http://127.0.0.1:${port}`);
  } finally {
    if ('closeAllConnections' in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};

/** Asks as a chat of the AI SDK does. */
export const askByAiSdk = (
  url: string,
  text: string,
  abortSignal?: AbortSignal,
): Promise<ReadableStream<UIMessageChunk>> =>
  new DefaultChatTransport({ api: `${url}/chat` }).sendMessages({
    trigger: 'submit-message',
    chatId: 'chat-1',
    messageId: undefined,
    messages: [
      { id: '1', role: 'user', parts: [{ type: 'text', text: 'Before.' }] },
      { id: '2', role: 'assistant', parts: [{ type: 'text', text: 'Yes?' }] },
      { id: '3', role: 'user', parts: [{ type: 'text', text }] },
    ],
    abortSignal,
  });

/** An AG-UI client with a question. */
export const agUiClient = (url: string, text: string): HttpAgent =>
  new HttpAgent({
    url: `${url}/ag-ui`,
    threadId: 'thread-1',
    initialMessages: [{ id: '1', role: 'user', content: text }],
  });
