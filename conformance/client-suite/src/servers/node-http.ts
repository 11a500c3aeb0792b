import { createServer } from 'node:http';
import { chatServer } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import { agent } from './agent.js';

const port = Number(process.env['PORT'] ?? 3_000);
export const server = createServer(toNodeListener(chatServer(agent)));
server.listen(port, '127.0.0.1');
