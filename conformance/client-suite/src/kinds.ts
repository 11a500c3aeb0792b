import { equal } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import { suite } from './columns.js';

/** A kind of server: a small program in `servers`, and how it is run. */
interface Kind {
  readonly name: string;
  readonly file: string;
  readonly run: (file: string) => Promise<string>;
}

/** A client of the AI SDK asks a question. */
const asked = async (api: string, fetching: typeof fetch = fetch): Promise<string> => {
  const question = { type: 'text' as const, text: 'I am Ann.' };
  const stream = await new DefaultChatTransport({ api, fetch: fetching }).sendMessages({
    trigger: 'submit-message',
    chatId: 'chat-1',
    messageId: undefined,
    messages: [{ id: '1', role: 'user', parts: [question] }],
    abortSignal: undefined,
  });
  let message: UIMessage | undefined;
  for await (const state of readUIMessageStream({ stream, terminateOnError: true }))
    message = state;
  return (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
};

type Respond = (request: Request) => Response | Promise<Response>;

const askedDirectly = (respond: Respond): Promise<string> =>
  asked('http://localhost/api/chat', async (url, init) => respond(new Request(url, init)));

/** The program prints its URL. */
const asProcess = async (file: string): Promise<string> => {
  const child = spawn(process.execPath, [join(suite, 'dist', 'servers', `${file}.js`)], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const line: readonly unknown[] = await once(createInterface(child.stdout), 'line');
    return await asked(`${String(line[0])}/api/chat`);
  } finally {
    child.kill('SIGKILL');
  }
};

const asListener = async (server: Server): Promise<string> => {
  if (!server.listening) await once(server, 'listening');
  try {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('It has no port.');
    return await asked(`http://127.0.0.1:${address.port}/api/chat`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
};

/** Imports a program that listens on a free port. */
const listening = async (load: () => Promise<{ readonly server: Server }>): Promise<string> => {
  process.env['PORT'] = '0';
  return asListener((await load()).server);
};

export const kinds: readonly Kind[] = [
  { name: '`serve()` in Node.js', file: 'serve', run: asProcess },
  {
    name: 'Next.js route',
    file: 'next',
    run: async () => askedDirectly((await import('./servers/next.js')).POST),
  },
  {
    name: 'Hono',
    file: 'hono',
    run: async () => {
      const { app } = await import('./servers/hono.js');
      return askedDirectly((request) => app.fetch(request));
    },
  },
  {
    name: 'Express',
    file: 'express',
    run: () => listening(() => import('./servers/express.js')),
  },
  {
    name: '`node:http`',
    file: 'node-http',
    run: () => listening(() => import('./servers/node-http.js')),
  },
  {
    name: 'Workers, Deno, Bun',
    file: 'fetch',
    run: async () => askedDirectly((await import('./servers/fetch.js')).default.fetch),
  },
  {
    name: 'your own encoders and sessions',
    file: 'encoders',
    run: async () => {
      const { app } = await import('./servers/encoders.js');
      return askedDirectly((request) => app.fetch(request));
    },
  },
  { name: '`serve()` with approvals', file: 'approvals', run: asProcess },
  { name: '`serve()` with AG-UI, OpenAI and A2A', file: 'protocols', run: asProcess },
];

/** Lines of code: those that are neither empty nor comments. */
export const linesOf = ({ file }: Kind): number =>
  readFileSync(join(suite, 'src', 'servers', `${file}.ts`), 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(?:\/\/|\/\*|\*)/.test(line)).length;

/** Runs a kind of server; returns a description of its problem, if it has one. */
export const problemOf = async ({ name, file, run }: Kind): Promise<string | undefined> => {
  try {
    equal(await run(file), 'Hello Ann.');
    return undefined;
  } catch (error) {
    return `${name}: ${String(error)}`;
  }
};
