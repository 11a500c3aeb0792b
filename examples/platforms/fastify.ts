// Fastify: a whole server for `useChat` at /api/chat, beside routes of your own.
import { createAgent } from 'millrace';
import { openai } from '@millrace/openai';
import { chatServer } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import fastify from 'fastify';

const agent = createAgent({ name: 'helper', model: openai('gpt-5-mini') });

// A client that disconnects aborts its call. By default, the call continues, and a reload joins it.
const chat = chatServer(agent, { onDisconnect: 'abort' });

// Pictures are larger than the usual limit of Fastify, 1 MiB.
export const app = fastify({ bodyLimit: 4_000_000 });
app.get('/health', () => 'ok');
app.all('/api/*', toNodeListener(chat));
