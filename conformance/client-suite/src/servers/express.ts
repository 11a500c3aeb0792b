import { chatServer } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import express from 'express';
import { agent } from './agent.js';

const port = Number(process.env['PORT'] ?? 3_000);
const app = express();
app.use(toNodeListener(chatServer(agent)));
export const server = app.listen(port, '127.0.0.1');
