// Runs a chat server within another web server: `node scripts/platforms/embedding.mjs 'Express 5'` prints the cells that fail, as JSON.
import { on, once } from 'node:events';
import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import { ClientFactory } from '@a2a-js/sdk/client';
import { a2a } from '@millrace/a2a/server';
import { createAgent } from 'millrace';
import { chatPage } from '@millrace/chat-page';
import { mcpHandler } from '@millrace/mcp/server';
import { chatServer } from '@millrace/server/chat';
import { openAi } from '@millrace/server/openai';
import { webSocketChat } from '@millrace/server/web-socket';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Observable, ReplaySubject, firstValueFrom, Subscription, timeout } from 'rxjs';
import { WebSocket } from 'ws';
import { hosts, other } from './hosts.mjs';

const soon = timeout(10_000);

/** A model that answers a question for a long answer as the test says, and all others immediately. */
const createModel = () => {
  const piece$ = new ReplaySubject();
  const cut$ = new ReplaySubject(1);
  const finish = { type: 'finish', finish: 'stop' };
  return {
    piece$,
    cut$,
    finish,
    model: {
      name: 'scripted',
      stream$: ({ messages }) =>
        new Observable((subscriber) => {
          const question = JSON.stringify(messages.at(-1));
          if (question.includes('Slowly')) return piece$.subscribe(subscriber);
          if (question.includes('Endless')) {
            subscriber.next({ type: 'text', text: 'Begun' });
            return () => cut$.next();
          }
          subscriber.next({ type: 'text', text: `Read ${question.length} characters.` });
          subscriber.next(finish);
          subscriber.complete();
        }),
    },
  };
};

const asking = (id, text, headers = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip', ...headers },
  body: JSON.stringify({
    id,
    messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text }] }],
  }),
});

/** Reads a response until its text contains something. */
const readUntil = async (reader, part, all = '') => {
  const decoder = new TextDecoder();
  for (let text = all; ;) {
    if (text.includes(part)) return text;
    const { done, value } = await reader.read();
    if (done) throw new Error(`The answer has no '${part}': ${text}`);
    text += decoder.decode(value, { stream: true });
  }
};

const cells = {
  'a chat streams': async ({ url }, { piece$, finish }) => {
    piece$.next({ type: 'text', text: 'One' });
    const answer = await fetch(`${url}/api/chat`, asking('a', 'Slowly'));
    strictEqual(answer.status, 200);
    const reader = answer.body.getReader();
    await readUntil(reader, 'One');
    piece$.next({ type: 'text', text: 'Two' });
    await readUntil(reader, 'Two');
    piece$.next(finish);
    piece$.complete();
    await readUntil(reader, '[DONE]');
  },
  'a client that leaves ends its call': async ({ url }, { cut$ }) => {
    const leaving = new globalThis.AbortController();
    const { signal } = leaving;
    const answer = await fetch(`${url}/api/chat`, { ...asking('b', 'Endless'), signal });
    await readUntil(answer.body.getReader(), 'Begun');
    leaving.abort();
    await firstValueFrom(cut$.pipe(soon));
  },
  '1 MB arrives, and 3 MB are refused': async ({ url }) => {
    const answer = await fetch(`${url}/api/chat`, asking('c', 'x'.repeat(1_000_000)));
    match(await answer.text(), /Read 1000\d\d\d characters/);
    const tooLarge = await fetch(`${url}/api/chat`, asking('c', 'x'.repeat(3_000_000)));
    strictEqual(tooLarge.status, 413);
    match((await tooLarge.json()).error, /too large/);
  },
  'another site is refused': async ({ url }) => {
    const origin = 'https://app.example';
    const refused = await fetch(`${url}/api/chat`, asking('d', 'Hi', { origin }));
    strictEqual(refused.status, 403);
    match((await refused.json()).error, /'https:\/\/app\.example'.*'origins'/);
    // As a browser sends it, also through a proxy that changes the host.
    const own = { origin: new URL(url).origin, 'sec-fetch-site': 'same-origin' };
    strictEqual((await fetch(`${url}/api/chat`, asking('d', 'Hi', own))).status, 200);
    const friend = { origin: 'https://friend.example' };
    const allowed = await fetch(`${url}/api/chat`, { headers: friend });
    strictEqual(allowed.headers.get('access-control-allow-origin'), friend.origin);
    match(allowed.headers.get('access-control-expose-headers'), /content-type/);
  },
  'other routes are left to others': async ({ url }) => {
    strictEqual(await (await fetch(`${url}/other`)).text(), other);
    strictEqual((await fetch(`${url}/api/chat/none/stream`)).status, 204);
    strictEqual((await fetch(`${url}/api/chat`, { method: 'HEAD' })).status, 200);
  },
  'the chat page finds its files': async ({ url }) => {
    for (const form of new URL(url).pathname === '/' ? ['/'] : ['', '/']) {
      const answer = await fetch(`${url}${form}`);
      const html = await answer.text();
      match(answer.headers.get('content-security-policy'), /trusted-types/);
      const links = [...html.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/gu)];
      strictEqual(links.length, 2);
      for (const [, link] of links) {
        const file = await fetch(new URL(link, answer.url));
        deepStrictEqual([link, file.status], [link, 200]);
        match(file.headers.get('content-type'), /^text\/(?:javascript|css)/);
      }
      const [, api] = /name="millrace-api" content="([^"]+)"/u.exec(html);
      strictEqual(new URL(api, answer.url).href, `${url}/api`);
    }
  },
};

/** The other handlers, each with its own client. */
const protocolCells = {
  'A2A answers': async ({ url }) => {
    const client = await new ClientFactory().createFromUrl(
      `${url}/`,
      '.well-known/agent-card.json',
    );
    const parts = [{ content: { $case: 'text', value: 'Hi' } }];
    const message = { messageId: 'm', role: 1, parts };
    const answer = await client.sendMessage({ message });
    match(JSON.stringify(answer), /Read \d+ characters/);
  },
  'chat completions answer': async ({ url }) => {
    const messages = [{ role: 'user', content: 'Hi' }];
    const answer = await fetch(`${url}/v1/chat/completions`, {
      ...asking(),
      body: JSON.stringify({ model: 'helper', messages }),
    });
    match(await answer.text(), /Read \d+ characters/);
  },
  'an MCP tool answers': async ({ url }) => {
    const client = new Client({ name: 'client', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const { tools } = await client.listTools();
    const [{ name }] = tools;
    const answer = await client.callTool({ name, arguments: { question: 'Hi' } });
    match(JSON.stringify(answer), /Read \d+ characters/);
    await client.close();
  },
};

/** For hosts that pass sockets on. */
const socketCells = {
  'a socket streams': async ({ url }) => {
    // As Chromium sends it: with an origin, and without the header that says what it is.
    const { origin } = new URL(url);
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/chat`, { origin });
    await once(socket, 'open');
    const { messages } = JSON.parse(asking('', 'Hi').body);
    const frame = { type: 'send', requestId: 'r', id: 's', messages, headers: {}, body: {} };
    socket.send(JSON.stringify(frame));
    let all = '';
    for await (const [data] of on(socket, 'message', { signal: AbortSignal.timeout(10_000) })) {
      all += String(data);
      if (JSON.parse(String(data)).type === 'end') break;
    }
    match(all, /Read \d+ characters/);
    socket.close();
    await once(socket, 'close');
  },
};

/** The cells of a host, each with its problem or null. */
async function rowOf(host) {
  const { model, ...script } = createModel();
  const sockets = webSocketChat();
  const agent = createAgent({ name: 'helper', model });
  const server = chatServer(agent, {
    onDisconnect: 'abort',
    origins: ['https://friend.example'],
    maxBytes: 2_000_000,
    protocols: [chatPage(), openAi(), a2a(), sockets],
  });
  const mcp = mcpHandler(agent, { description: 'Answers questions.' });
  const isMcp = ({ url }) => new URL(url).pathname === '/mcp';
  const attached = new Subscription();
  const started = await hosts[host]({
    respond: (request) => (isMcp(request) ? mcp.fetch(request) : server.respond(request)),
    handles: (request) => isMcp(request) || server.handles(request),
    attach: (http, mount = '') => {
      attached.add(sockets.attach$(http, server, { mount }).subscribe());
    },
  });
  const chosen = { ...cells, ...protocolCells, ...(started.hasSockets && socketCells) };
  const problems = {};
  for (const [name, check] of Object.entries(chosen)) {
    try {
      problems[name] = null;
      await check(started, script);
    } catch (error) {
      problems[name] = error.stack;
    }
  }
  attached.unsubscribe();
  mcp.close();
  await started.close();
  await server.close({ timeoutMs: 0 });
  return problems;
}

const [, program, ...chosen] = process.argv;
if (program?.endsWith('embedding.mjs')) {
  const names = chosen.length === 0 ? Object.keys(hosts) : chosen;
  const rows = {};
  for (const host of names) {
    try {
      rows[host] = await rowOf(host);
    } catch (error) {
      rows[host] = { 'the server starts': error.stack };
    }
  }
  console.log(JSON.stringify(rows));
  process.exit();
}
