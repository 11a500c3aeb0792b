import { afterEach, describe, it } from '@jest/globals';
import { text } from 'millrace/testing';
import { chatServer } from '@millrace/server/chat';
import { toNodeListener } from '@millrace/server/node';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as requestOf } from 'node:http';
import { chatPage } from '../index.js';
import { agentOf, visits } from './browser.test-support.js';

const closing: (() => unknown)[] = [];
const visiting = visits();

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const chat = async (): Promise<string> => {
  const server = chatServer(agentOf([[text('Hello.')]]), { protocols: [chatPage()] });
  closing.unshift(() => server.close({ timeoutMs: 0 }));
  return visiting.serveSite(toNodeListener(server));
};

/** A process of its own: the compiler of Vite does not run in a realm of the tests. */
const viteProgram = `
import { createServer } from 'vite';
const server = await createServer({
  configFile: false,
  logLevel: 'silent',
  appType: 'custom',
  optimizeDeps: { noDiscovery: true },
  server: { port: 0, host: '127.0.0.1', proxy: { '/': process.argv.at(-1) } },
});
await server.listen();
console.log('http://127.0.0.1:' + server.httpServer.address().port + '/');
`;

const asked = async (url: string): Promise<void> => {
  const { ask, sees, isAnswered } = await visiting.visit(url);
  await ask('Hi');
  await sees('Hello.');
  await isAnswered();
};

describe('X43, X44: the chat page', () => {
  it('works with a Vite server and a proxy in its short form, which changes the host', async () => {
    const target = await chat();
    const child = spawn(process.execPath, ['--input-type=module', '-e', viteProgram, target], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    closing.unshift(() => child.kill());
    const [url] = (await once(child.stdout, 'data')) as [Buffer];
    await asked(String(url).trim());
  });

  it.each([
    ['removes a prefix', '/ai/', {}],
    ['removes a prefix and names it', '/ai', { 'x-forwarded-prefix': '/ai' }],
  ])('works behind a proxy that %s', async (_, path, added) => {
    const target = await chat();
    const { host } = new URL(target);
    const url = await visiting.serveSite((request, response) => {
      const { method, headers, url: asked = '' } = request;
      if (!asked.startsWith('/ai')) {
        response.writeHead(404).end();
        return;
      }
      const inner = `${target}${asked.slice('/ai'.length) || '/'}`;
      const forwarded = requestOf(inner, { method, headers: { ...headers, host, ...added } });
      forwarded.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      response.once('close', () => forwarded.destroy());
      forwarded.on('error', () => response.destroy());
      request.pipe(forwarded);
    });
    await asked(`${url}${path}`);
  });
});
