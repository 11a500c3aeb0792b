import { chatServer } from '@millrace/server/chat';
import { Hono } from 'hono';
import { agent } from './agent.js';

const server = chatServer(agent);
export const app = new Hono();
app.all('/api/*', ({ req }) => server.respond(req.raw));
