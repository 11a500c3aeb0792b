import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from '@jest/globals';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

const servers: Server[] = [];
afterAll(() =>
  servers.forEach((server) => {
    server.closeAllConnections();
    server.close();
  }),
);

type Answer = string | object | ((response: ServerResponse) => void);

/** A vendor on a free port of 127.0.0.1, which remembers what it is asked. Unknown paths are answered with 404. */
export interface Vendor {
  readonly url: string;
  readonly asked: Asked[];
  /** Replaces the answers, by path. An object is sent as JSON. */
  answers: Readonly<Record<string, Answer>>;
  /** Resolves once a connection has been closed. */
  readonly closed: Promise<unknown>;
}

export const openVendor = async (): Promise<Vendor> => {
  const asked: Asked[] = [];
  const state: { answers: Readonly<Record<string, Answer>> } = { answers: {} };
  const closing = new EventEmitter();
  const closed = once(closing, 'close');
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      asked.push({
        method: request.method ?? '',
        path: pathname,
        query: Object.fromEntries(searchParams),
        headers: request.headers,
        body: text === '' ? undefined : JSON.parse(text),
      });
      const answer =
        state.answers[pathname] ?? ((it: ServerResponse) => void it.writeHead(404).end());
      if (typeof answer === 'function') answer(response);
      else response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
    });
  })
    .on('connection', (socket) => socket.once('close', () => closing.emit('close')))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    closed,
    get answers() {
      return state.answers;
    },
    set answers(answers) {
      state.answers = answers;
      asked.length = 0;
    },
  };
};
