// Express: a whole server for `useChat` at /api/chat, beside routes of your own.
import { createAgent } from 'millrace';
import { openai } from '@millrace/openai';
import { chatServer } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import express from 'express';

const agent = createAgent({ name: 'helper', model: openai('gpt-5-mini') });

// A client that disconnects aborts its call. By default, the call continues, and a reload joins it.
const chat = chatServer(agent, { onDisconnect: 'abort' });

export const app = express();
app.get('/health', (_request, response) => {
  response.send('ok');
});
app.use(toNodeListener(chat)); // answers everything that no route above has
