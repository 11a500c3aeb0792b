import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpAgent } from '@ag-ui/client';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { DefaultChatTransport } from 'ai';
import { on, once } from 'node:events';
import { createServer } from 'node:http';
import OpenAI from 'openai';
import { WebSocket } from 'ws';
import { agUi } from '../ag-ui/index.js';
import { type ChatServer, chatServer, mountServers } from '../chat/index.js';
import { openAi } from '../openai/index.js';
import { answerAmong, answerIn, readStream, watched } from '../read-as-client.test-support.js';
import { webSocketChat } from '../web-socket/index.js';
import { toNodeListener } from './index.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const names = ['sales', 'support'] as const;

const serverOf = (name: string, path = '/api') => {
  const sockets = webSocketChat({ path: `${path}/chat` });
  const protocols = [agUi({ path: `${path}/ag-ui` }), openAi({ path: `${path}/v1` }), sockets];
  const answers = Array.from({ length: 8 }, () => [text(`I am ${name}.`)]);
  const agent = createAgent({ name, model: scriptedModel(...answers) });
  const server = chatServer(agent, { path, protocols });
  closing.push(() => server.close({ timeoutMs: 0 }));
  return { server, sockets };
};

const listening = async (
  listener: ReturnType<typeof toNodeListener>,
  sockets: readonly (readonly [ReturnType<typeof webSocketChat>, ChatServer, string])[],
): Promise<string> => {
  const http = createServer(listener).listen(0, '127.0.0.1');
  closing.unshift(() => {
    http.close();
    http.closeAllConnections();
  });
  sockets.forEach(([{ attach$ }, server, mount]) => {
    const attached = attach$(http, server, { mount }).subscribe();
    closing.unshift(() => {
      attached.unsubscribe();
    });
  });
  await once(http, 'listening');
  const address = http.address();
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`;
};

const messages = [
  { id: 'q', role: 'user' as const, parts: [{ type: 'text' as const, text: 'Who are you?' }] },
];

/** The answers of the server at this URL, by each protocol, to requests for the same conversation. */
const answersOf = async (url: string): Promise<readonly string[]> => {
  const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
  const trigger = 'submit-message' as const;
  const rest = { messageId: undefined, abortSignal: undefined };
  const stream = await transport.sendMessages({ trigger, chatId: 'a', messages, ...rest });
  const run = await watched(
    new HttpAgent({
      url: `${url}/api/ag-ui`,
      threadId: 'b',
      initialMessages: [{ id: 'q', role: 'user', content: 'Who are you?' }],
    }),
  );
  const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/api/v1` });
  const [model] = (await client.models.list()).data;
  const response = await client.responses.create({ model: model?.id ?? '', input: 'Who?' });
  const again = await client.responses.retrieve(response.id);
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/chat`);
  await once(socket, 'open');
  const request = { type: 'send', requestId: 'r', id: 'c', messages, headers: {}, body: {} };
  socket.send(JSON.stringify(request));
  let said = '';
  for await (const [data] of on(socket, 'message')) {
    const frame = JSON.parse(String(data)) as { type: string; chunk?: { delta?: string } };
    said += frame.chunk?.delta ?? '';
    if (frame.type !== 'chunk' && frame.type !== 'start') break;
  }
  socket.close();
  return [
    answerIn((await readStream(stream)).message),
    answerAmong(run),
    response.output_text,
    again.output_text,
    said,
  ];
};

const own = (name: string) => Array.from({ length: 5 }, () => `I am ${name}.`);

describe('X43: several agents at one address', () => {
  it('are served below a path each, in every protocol', async () => {
    const [sales, support] = names.map((name) => serverOf(name));
    if (sales === undefined || support === undefined) throw new Error('There are two.');
    const all = mountServers({ '/sales': sales.server, '/support': support.server });
    const url = await listening(toNodeListener(all), [
      [sales.sockets, sales.server, '/sales'],
      [support.sockets, support.server, '/support'],
    ]);
    for (const name of names) expect(await answersOf(`${url}/${name}`)).toEqual(own(name));
    for (const path of ['/', '/api/chat', '/sale/api/chat', '/salesapi/chat']) {
      expect((await fetch(`${url}${path}`)).status).toBe(404);
    }
    const nowhere = new WebSocket(`${url.replace('http', 'ws')}/api/chat`);
    await expect(once(nowhere, 'open')).rejects.toThrow('404');
  });

  it('are served by paths of their own, one after another', async () => {
    const [sales, support] = names.map((name) => serverOf(name, `/${name}/api`));
    if (sales === undefined || support === undefined) throw new Error('There are two.');
    const [first, second] = [sales, support].map(({ server }) => toNodeListener(server));
    const url = await listening(
      (request, response) => first?.(request, response, () => second?.(request, response)),
      [
        [sales.sockets, sales.server, ''],
        [support.sockets, support.server, ''],
      ],
    );
    for (const name of names) expect(await answersOf(`${url}/${name}`)).toEqual(own(name));
  });

  it('are found by the longest path, and may be mounted again', async () => {
    const [outer, inner] = names.map((name) => serverOf(name).server);
    if (outer === undefined || inner === undefined) throw new Error('There are two.');
    const mounted = mountServers({ '/a': outer, '/a/b': inner });
    const twice = mountServers({ '/x': mounted });
    const ask = async (path: string) => {
      const asked = new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: crypto.randomUUID(), messages }),
      });
      return (await twice.respond(asked)).text();
    };
    expect(await ask('/x/a/api/chat')).toContain('I am sales.');
    expect(await ask('/x/a/b/api/chat')).toContain('I am support.');
    const at = (path: string) => ({ method: 'GET', url: `http://localhost${path}` });
    expect(twice.handles(at('/x/a/api/chat'))).toBe(true);
    expect(twice.handles(at('/a/api/chat'))).toBe(false);
    expect(twice.handles(at('/x/a/b'))).toBe(false);
  });

  it.each([
    [{ sales: serverOfNothing() }],
    [{ '/': serverOfNothing() }],
    [{ '/a/': serverOfNothing() }],
    [{ '/a': 5 }],
    [undefined],
  ])('refuses %j', (servers) => {
    expect(() => mountServers(servers as never)).toThrow('servers by their paths');
  });
});

function serverOfNothing() {
  return { respond: () => Promise.reject(new Error('Nothing.')), handles: () => false };
}
