// Runs a chat server within another web server: `node scripts/platforms/embedding.mjs 'Express 5'` prints the cells that fail, as JSON.
import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import { createAgent } from '@millrace/core';
import { chatPage } from '@millrace/chat-page';
import { chatServer } from '@millrace/server/chat';
import { Observable, ReplaySubject, firstValueFrom, timeout } from 'rxjs';
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
  '1 MB arrives': async ({ url, isProxy }) => {
    const answer = await fetch(`${url}/api/chat`, asking('c', 'x'.repeat(1_000_000)));
    match(await answer.text(), /Read 1000\d\d\d characters/);
    // A proxy may not read a response that comes before the end of the request.
    if (isProxy) return;
    const tooLarge = await fetch(`${url}/api/chat`, asking('c', 'x'.repeat(3_000_000)));
    strictEqual(tooLarge.status, 413);
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

export const cellNames = Object.keys(cells);

/** The cells of a host, each with its problem. */
async function rowOf(host) {
  const { model, ...script } = createModel();
  const server = chatServer(createAgent({ name: 'helper', model }), {
    onDisconnect: 'abort',
    origins: ['https://friend.example'],
    maxBytes: 2_000_000,
    protocols: [chatPage()],
  });
  const started = await hosts[host](server);
  const problems = {};
  for (const [name, check] of Object.entries(cells)) {
    try {
      await check(started, script);
    } catch (error) {
      problems[name] = error.stack;
    }
  }
  await started.close();
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
