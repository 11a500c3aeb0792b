// app/api/[...path]/route.ts
import { chatServer } from '@millrace/server/chat';
import { agent } from './agent.js';

const server = chatServer(agent);
export const GET = server.respond;
export const POST = server.respond;
