import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk } from 'millrace';
import express, { type RequestHandler } from 'express';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { of } from 'rxjs';
import { chatServer, type ChatServerOptions } from '../chat/index.js';
import { toNodeListener } from './index.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A chat server whose model answers with the length of the question. */
const chatWith = (options: ChatServerOptions = {}) => {
  const errors: string[] = [];
  const agent = createAgent({
    name: 'helper',
    model: {
      name: 'measuring',
      stream$: ({ messages }) => {
        const asked = /z+é*/u.exec(JSON.stringify(messages.at(-1)))?.[0] ?? '';
        return of<ModelChunk[]>(
          { type: 'text', text: `Read ${asked.length}.` },
          { type: 'finish', finish: 'stop' },
        );
      },
    },
  });
  const onError = ({ message }: Error): void => void errors.push(message);
  const server = chatServer(agent, { onError, ...options });
  closing.push(() => server.close({ timeoutMs: 0 }));
  return { server, errors, listener: toNodeListener(server) };
};

/** Waits for something, but not for ever: a test that fails ends. */
const until = async (isTrue: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 400 && !isTrue(); turn += 1) await wait(10);
  expect(isTrue()).toBe(true);
};

const listening = async (listener: RequestListener): Promise<number> => {
  const server: Server = createServer(listener).listen(0, '127.0.0.1');
  closing.unshift(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
};

const question = (words: string) =>
  JSON.stringify({ id: 'a', messages: [{ role: 'user', parts: [{ type: 'text', text: words }] }] });

const asking = async (port: number, words: string) => {
  const answer = await fetch(`http://127.0.0.1:${port}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: question(words),
  });
  return answer.text();
};

/** What others do with a body before the server asks for it. */
const others: readonly (readonly [string, RequestHandler])[] = [
  [
    'listens to it',
    (request, _response, next) => {
      request.on('data', () => undefined);
      next();
    },
  ],
  [
    'pipes it',
    (request, _response, next) => {
      request.pipe(new PassThrough()).resume();
      next();
    },
  ],
  [
    'reads it in steps',
    (request, _response, next) => {
      request.on('readable', () => {
        while (request.read() !== null);
      });
      next();
    },
  ],
  ...(['utf8', 'latin1', 'base64', 'hex'] as const).map((encoding): (typeof others)[number] => [
    `sets the encoding ${encoding}`,
    (request, _response, next) => {
      request.setEncoding(encoding);
      next();
    },
  ]),
  [
    'keeps something as request.raw',
    (request, _response, next) => {
      next(void Object.assign(request, { raw: 'bytes' }));
    },
  ],
];

describe('X43: a server after a middleware that listens to the body', () => {
  it.each(others)('gets all of it, if that %s', async (_, other) => {
    for (const user of [undefined, () => wait(20, 'ann')]) {
      const { listener } = chatWith(user === undefined ? {} : { user });
      const port = await listening(express().use(other).use(listener));
      for (const length of [10, 200_000]) {
        const words = `${'z'.repeat(length)}${'é'.repeat(length)}`;
        expect(await asking(port, words)).toContain(`Read ${length * 2}.`);
      }
    }
  });

  it('passes on requests that the server does not handle', async () => {
    let heard = 0;
    const counting: RequestHandler = (request, _response, next) => {
      request.on('data', ({ length }: Buffer) => (heard += length));
      next();
    };
    const { listener } = chatWith({ maxBytes: 1_000 });
    const port = await listening(express().use(counting).use(listener));
    expect(await asking(port, 'x'.repeat(1_000_000))).toContain('too large');
    expect(heard).toBe(question('x'.repeat(1_000_000)).length);
  });

  it('reports a body that ends too early', async () => {
    for (const [, other] of others.slice(0, 5)) {
      const { listener, errors } = chatWith();
      const port = await listening(express().use(other).use(listener));
      const socket = connect(port, '127.0.0.1');
      socket.write(`${headOf(1_000)}{"id":`);
      await wait(50);
      socket.destroy();
      await until(() => errors.length > 0);
      expect(errors[0]).toContain('incomplete');
    }
  });
});

const headOf = (length: number, more = '') =>
  `POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`;

/** Sends a request slowly, reads the response only after it, as some clients and proxies do, and returns the response. */
const late = async (port: number, head: string, length: number): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  let all = '';
  socket.on('error', ({ message }) => (all += message));
  socket.pause();
  socket.write(head);
  for (let sent = 0; sent < length; sent += 100_000) {
    socket.write('x'.repeat(100_000));
    await wait(20);
  }
  socket.on('data', (piece) => (all += String(piece)));
  socket.resume();
  socket.end();
  await once(socket, 'close');
  return all;
};

describe('X43: an answer before the end of its request', () => {
  const length = 4_000_000;
  it.each([
    ['too large', 413, headOf(length), {}],
    ['not JSON', 415, headOf(length).replace('application/json', 'text/plain'), {}],
    ['of another site', 403, headOf(length, 'Origin: https://app.example\r\n'), {}],
    ['of nobody', 401, headOf(length), { user: () => undefined }],
  ] as const)(
    'reaches a client that reads it late: %s',
    async (what, status, head, options) => {
      const { listener } = chatWith({ maxBytes: 1_000_000, ...options });
      const port = await listening(listener);
      for (const connection of ['', 'Connection: close\r\n']) {
        const asked = head.replace('\r\n\r\n', `\r\n${connection}\r\n`);
        const answer = await late(port, asked, length);
        expect([what, answer.split('\r\n')[0]]).toEqual([
          what,
          expect.stringMatching(`^HTTP/1.1 ${status} `),
        ]);
        expect(answer).toContain('"error":');
      }
    },
    20_000,
  );

  it('is sent immediately', async () => {
    const { listener } = chatWith({ maxBytes: 1_000 });
    const socket = connect(await listening(listener), '127.0.0.1');
    socket.write(headOf(length));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /u);
    socket.destroy();
  });

  it('leaves the connection to further requests', async () => {
    const { listener } = chatWith({ maxBytes: 1_000 });
    const socket = connect(await listening(listener), '127.0.0.1');
    let all = '';
    socket.on('data', (piece) => (all += String(piece)));
    socket.write(`${headOf(2_000)}${'x'.repeat(2_000)}`);
    socket.write('GET /api/chat HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => all.includes('{"chats":[]}'));
    expect(all).toMatch(/^HTTP\/1.1 413 /u);
    socket.destroy();
  });
});

describe('X43: a client of HTTP/1.0', () => {
  it('gets an answer without chunks, which it does not know', async () => {
    const socket = connect(await listening(chatWith().listener), '127.0.0.1');
    const body = question('zzz');
    socket.write(`${headOf(body.length).replace('1.1', '1.0')}${body}`);
    let all = '';
    for await (const piece of socket) all += String(piece);
    expect(all).toContain('Read 3.');
    expect(all.toLowerCase()).not.toContain('transfer-encoding');
    expect(all).toMatch(/\r\n\r\nid: /u);
  });
});

describe('X43: an absolute target', () => {
  it.each([
    ['http://evil.example/api/chat', 'localhost', 421],
    ['HTTP://evil.example/api/chat', 'localhost', 400],
    ['http://localhost/api/chat', 'evil.example', 200],
  ])('names the host, for any header: %s with %s', async (target, host, status) => {
    const socket = connect(await listening(chatWith().listener), '127.0.0.1');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let all = '';
    for await (const piece of socket) all += String(piece);
    expect(all).toMatch(new RegExp(`^HTTP/1.1 ${status} `, 'u'));
  });
});
