import type { Socket } from 'node:net';
import { shown } from '../runner/show.js';
import { ask, bodyOf, newChatId, open, postOf, wholeText } from './client.js';
import { fastPlan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { withServer } from './server-process.js';

/** Something that no honest client does. */
interface Attack {
  readonly name: string;
  /** Writes it to a fresh socket. */
  readonly send: (socket: Socket) => unknown;
  /** How the answers must look, beside that the server lives on. */
  readonly isRight?: (text: string) => boolean;
}

interface Outcome {
  readonly name: string;
  readonly times: number;
  /** The status lines of one of them. */
  readonly statuses: readonly string[];
  readonly ms: number;
  readonly isClosed: boolean;
  readonly isRight: boolean;
  /** What the server holds more after all of them, for each, in bytes. */
  readonly growthBytes: number;
}

/** What hostile requests are answered with, and what they leave behind. */
export const hostile = ({ isSmall, onProgress }: ServeBench): Promise<ServeReport> =>
  withServer('serve, in process', async (server) => {
    const times = isSmall ? 2 : 20;
    for (let time = 0; time < 20; time += 1) await ask(server.port, fastPlan);
    const outcomes: Outcome[] = [];
    for (const attack of attacks) {
      onProgress(`hostile: ${attack.name}`);
      await attackOnce(server.port, attack);
      const before = await server.used(true);
      const seen = [];
      for (let time = 0; time < times; time += 1) seen.push(await attackOnce(server.port, attack));
      const after = await server.used(true);
      const [{ statuses, isClosed } = { statuses: [], isClosed: false }] = seen;
      const ms = Math.max(...seen.map((it) => it.ms));
      const isRight = seen.every((it) => it.isRight);
      const growthBytes = (after.heldBytes - before.heldBytes) / times;
      outcomes.push({ name: attack.name, times, statuses, ms, isClosed, isRight, growthBytes });
    }
    const { isDone } = await ask(server.port, fastPlan);
    return {
      tables: [
        {
          title: `hostile: each ${times} times, on fresh connections`,
          about:
            'status: of the answers. closed: the server ended the connection, within a second of silence. right: the answer is what it must be. ms: the slowest, without this silence. growth: what the server holds more afterwards, for each; an ended call stays for 5 minutes.',
          columns: [
            { name: 'request', isWords: true },
            { name: 'status', isWords: true },
            { name: 'closed', isWords: true },
            { name: 'right', isWords: true },
            { name: 'ms' },
            { name: 'growth kB' },
          ],
          rows: outcomes.map(({ name, statuses, isClosed, isRight, ms, growthBytes }) => [
            name,
            shortened(statuses),
            isClosed ? 'yes' : 'no',
            isRight ? 'yes' : 'NO',
            shown(ms),
            shown(growthBytes / 1_000),
          ]),
          notes: isDone ? [] : ['The server answers no more.'],
        },
      ],
      raw: outcomes,
    };
  });

const shortened = (statuses: readonly string[]): string => {
  const [first = 'none'] = statuses;
  return statuses.length > 1 && new Set(statuses).size === 1
    ? `${statuses.length} × ${first}`
    : statuses.join(', ') || first;
};

const quietMs = 1_000;

const attackOnce = async (port: number, { send, isRight = () => true }: Attack) => {
  const socket = await open(port);
  const startedAt = performance.now();
  let lastAt = startedAt;
  socket.on('data', () => (lastAt = performance.now()));
  const closed = { is: false };
  socket.once('close', () => (closed.is = true));
  const answer = wholeText(socket, quietMs);
  send(socket);
  const text = await answer;
  const isClosed = closed.is;
  socket.destroy();
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/gu)].map(([, status = '']) => status);
  return { statuses, isClosed, isRight: isRight(text), ms: lastAt - startedAt };
};

const get = (path: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

const postHead = (more: string): string =>
  `POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${more}\r\n`;

const statusIs =
  (...statuses: readonly string[]) =>
  (text: string): boolean =>
    statuses.some((status) => text.startsWith(`HTTP/1.1 ${status}`));

const write = (text: string) => (socket: Socket) => socket.write(text);

const large = 10_000_000;

/** Writes chunks of a body for as long as the socket is open. */
const endless = (socket: Socket): void => {
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const more = (): void => {
    while (socket.writable && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
};

const message = (id: string, text: string): string =>
  JSON.stringify({
    id: newChatId(),
    messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
  });

const plan = JSON.stringify(fastPlan);
const forged = '\n\ndata: {"type":"forged"}\n\n';
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const isForged = (text: string): boolean => /^(?:data|id|event|retry): .*forged/mu.test(text);

/** Refused by tests of packages/server already: malformed JSON, no UTF-8, prototypes, origins, another user, ids that are paths. */
const attacks: readonly Attack[] = [
  {
    name: '10 MB declared, none sent',
    send: write(postHead(`content-length: ${large}\r\n`)),
    isRight: statusIs('413'),
  },
  {
    name: '10 MB declared and sent',
    send: (socket) => {
      socket.write(postHead(`content-length: ${large}\r\n`));
      socket.write(' '.repeat(large));
    },
    isRight: (text) => text === '' || statusIs('413')(text),
  },
  {
    name: 'a chunked body that never ends',
    send: (socket) => {
      socket.write(postHead('transfer-encoding: chunked\r\n'));
      endless(socket);
    },
    isRight: (text) => text === '' || statusIs('413')(text),
  },
  {
    name: 'a header of 1 MB',
    send: write(get('/api/chat/a', `x-large: ${'x'.repeat(1_000_000)}\r\n`)),
    isRight: (text) => text === '' || statusIs('431')(text),
  },
  {
    name: 'another host',
    send: write('GET /api/chat/a HTTP/1.1\r\nhost: evil.example\r\n\r\n'),
    isRight: statusIs('421'),
  },
  {
    name: 'no host',
    send: write('GET /api/chat/a HTTP/1.1\r\n\r\n'),
    isRight: statusIs('400', '421'),
  },
  {
    name: 'an absolute target of another host',
    send: write('GET http://evil.example/api/chat/a HTTP/1.1\r\nhost: localhost\r\n\r\n'),
    isRight: statusIs('400', '421'),
  },
  {
    name: 'a length and chunks',
    send: write(postHead('content-length: 4\r\ntransfer-encoding: chunked\r\n') + '0\r\n\r\n'),
    isRight: statusIs('400'),
  },
  {
    name: 'events in the id of a message',
    send: (socket) => socket.write(postOf(message(forged, plan), 'connection: close\r\n')),
    isRight: (text) => statusIs('200', '400')(text) && !isForged(text),
  },
  {
    name: 'events in the id of a chat',
    send: (socket) => socket.write(postOf(bodyOf(fastPlan, `a${forged}`))),
    isRight: statusIs('400'),
  },
  {
    name: 'events in the question, whose error comes back',
    send: (socket) => socket.write(postOf(message('q', forged), 'connection: close\r\n')),
    isRight: (text) => statusIs('200')(text) && !isForged(text),
  },
  {
    name: 'Last-Event-ID: garbage',
    send: write(get('/api/chat/a/stream', 'last-event-id: %00\u00ff;:::\r\n')),
    isRight: statusIs('204'),
  },
  {
    name: 'Last-Event-ID: unknown and huge',
    send: write(get('/api/chat/a/stream', 'last-event-id: a:999999:999999999\r\n')),
    isRight: (text) => statusIs('404', '204', '200')(text) && !text.includes('data: '),
  },
  {
    name: 'Last-Event-ID: 100 kB',
    send: write(get('/api/chat/a/stream', `last-event-id: ${'9'.repeat(100_000)}\r\n`)),
    isRight: (text) => text === '' || statusIs('431')(text),
  },
  {
    name: '100,000 nested arrays',
    send: write(postOf(nested(100_000))),
    isRight: statusIs('400'),
  },
  {
    name: '100,000 nested arrays as parts',
    send: write(postOf(`{"id":"a","messages":[{"role":"user","parts":${nested(100_000)}}]}`)),
    isRight: statusIs('400'),
  },
  {
    name: '100,000 nested arrays beside a question',
    send: (socket) =>
      socket.write(
        postOf(
          bodyOf(fastPlan).replace('{', `{"more":${nested(100_000)},`),
          'connection: close\r\n',
        ),
      ),
    isRight: statusIs('200', '400'),
  },
  {
    name: '100 pipelined requests',
    send: write(get('/api/chat/a').repeat(100)),
    isRight: (text) => text.split('HTTP/1.1 200').length === 101,
  },
  {
    name: 'pipelined questions of one conversation',
    send: (socket) => socket.write(postOf(bodyOf(fastPlan, newChatId())).repeat(3)),
    isRight: (text) => text.split('[DONE]').length === 4,
  },
  {
    name: 'half-closed after a question',
    send: (socket) => socket.end(postOf(bodyOf(fastPlan))),
    // Node ends the connection. The call goes on.
    isRight: (text) => text === '' || statusIs('200')(text),
  },
  {
    name: 'half-closed in a body',
    send: (socket) => socket.end(`${postHead('content-length: 100\r\n')}{`),
    isRight: (text) => text === '' || statusIs('400')(text),
  },
  {
    name: 'gone after a question',
    send: (socket) => {
      socket.write(postOf(bodyOf(fastPlan)), () => socket.destroy());
    },
  },
  {
    name: 'no HTTP',
    send: write('\u0016\u0003\u0001 hello\r\n\r\n'),
    isRight: statusIs('400'),
  },
  {
    name: 'a path that is not UTF-8',
    send: write(get('/api/chat/%E0%A4%A')),
    isRight: statusIs('400'),
  },
  {
    name: 'a history that does not exist',
    send: write(get('/api/chat/nothing')),
    isRight: statusIs('200'),
  },
  {
    name: 'TRACE',
    send: write('TRACE /api/chat/a HTTP/1.1\r\nhost: localhost\r\n\r\n'),
    isRight: statusIs('405'),
  },
];
