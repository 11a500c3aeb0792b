// Runs one of examples/platforms against a loopback endpoint: `node scripts/platforms/frameworks.mjs express`.
import { match, strictEqual } from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { root } from '../workspaces.mjs';
import { startEndpoint } from './endpoint.mjs';

const folder = join(root, 'examples/platforms');
const { resolve } = createRequire(join(folder, 'package.json'));
/** A module that the examples import. */
const load = (specifier) => import(pathToFileURL(resolve(specifier)));
const example = (file) => import(pathToFileURL(join(folder, 'dist', file)));

/** Reads a response until its text contains something, and closes the connection. */
async function readUntil(response, part) {
  const decoder = new TextDecoder();
  let all = '';
  for await (const bytes of response.body) {
    all += decoder.decode(bytes, { stream: true });
    // Leaving the loop cancels the body.
    if (all.includes(part)) return all;
  }
  throw new Error(`The answer has no '${part}': ${all}`);
}

/** Requests to a server: a question is answered, and leaving an answer aborts the request to the model. */
async function checkServer(ask, { whenLeft }) {
  const answered = await ask('Hello?');
  strictEqual(answered.status, 200);
  match(answered.headers.get('content-type'), /^text\/event-stream/);
  match(await answered.text(), /"Hello\."/);
  await readUntil(await ask('Please wait'), 'One moment');
  await whenLeft();
}

const listening = async (server) => {
  if (!server.listening) await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
};

const get = (url) => (question) => fetch(`${url}?question=${encodeURIComponent(question)}`);

const uiMessages = (question) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    id: `chat-${question.length}`,
    messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: question }] }],
  }),
});

const checks = {
  async express(endpoint) {
    const { app } = await example('express.js');
    const server = app.listen(0, '127.0.0.1');
    const url = await listening(server);
    strictEqual(await (await fetch(`${url}/health`)).text(), 'ok');
    await checkServer((question) => fetch(`${url}/api/chat`, uiMessages(question)), endpoint);
  },

  async fastify(endpoint) {
    const { app } = await example('fastify.js');
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    strictEqual(await (await fetch(`${url}/health`)).text(), 'ok');
    strictEqual((await fetch(`${url}/api/none`)).status, 404);
    await checkServer((question) => fetch(`${url}/api/chat`, uiMessages(question)), endpoint);
  },

  async 'node-http'(endpoint) {
    const { server } = await example('node-http.js');
    server.listen(0, '127.0.0.1');
    await checkServer(get(await listening(server)), endpoint);
  },

  async nest(endpoint) {
    await load('reflect-metadata');
    const { NestFactory } = await load('@nestjs/core');
    const { ChatModule } = await example('nest.js');
    const app = await NestFactory.create(ChatModule, { logger: ['error'] });
    const server = await app.listen(0, '127.0.0.1');
    await checkServer(get(`${await listening(server)}/chat`), endpoint);
  },

  async 'next-route'(endpoint) {
    const { NextRequest } = await load('next/server.js');
    const { POST } = await example('next-route.js');
    await checkServer(
      (question) => POST(new NextRequest('http://localhost/api/chat', uiMessages(question))),
      endpoint,
    );
  },

  async 'angular.service'({ url, whenLeft }) {
    // The origin of the page, whose server forwards to the endpoint.
    globalThis.location = { origin: url };
    // Compiles the decorators, as a build does ahead of time.
    await load('@angular/compiler');
    const { Injector, ɵINJECTOR_SCOPE: scope } = await load('@angular/core');
    const { ChatService } = await example('angular.service.js');
    const injector = Injector.create({ providers: [{ provide: scope, useValue: 'root' }] });
    const chat = injector.get(ChatService);
    const shows = async (wanted) => {
      const end = Date.now() + 20_000;
      while (chat.answer() !== wanted && Date.now() < end) await setImmediate();
      strictEqual(chat.answer(), wanted);
    };
    chat.ask('Hello?');
    await shows('Hello.');
    chat.ask('Please wait');
    await shows('One moment');
    chat.ask('Hello again?');
    await shows('Hello.');
    await whenLeft();
    chat.ask('Please wait');
    await shows('One moment');
    injector.destroy();
    await whenLeft();
  },
};

const [name] = process.argv.slice(2);
const endpoint = await startEndpoint();
process.env.OPENAI_BASE_URL = `${endpoint.url}/v1`;
await checks[name](endpoint);
console.log('checked');
process.exit();
