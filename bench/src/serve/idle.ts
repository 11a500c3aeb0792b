import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { quantile } from '../quantile.js';
import { openFilesLimit } from '../runner/open-files-limit.js';
import { shown } from '../runner/show.js';
import { ask, bodyOf, followOf, newChatId, openMany, postOf } from './client.js';
import { fastPlan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { type ServerProcess, withServer } from './server-process.js';

/** What clients that do nothing cost. */
interface Idle {
  readonly what: string;
  readonly count: number;
  /** Of each, in bytes. */
  readonly heldBytes: number;
  readonly rssBytes: number;
  /** CPU while all are idle, in milliseconds per second. */
  readonly cpuPerSecond: number;
  /** Short answers beside them: the whole time of each. */
  readonly answersMs: readonly number[];
  /** After so many milliseconds the server had closed half of them. NaN: it had closed none when the row ended. */
  readonly closedMs: number;
  readonly closed: number;
  /** The first line that they got before. */
  readonly status: string;
}

const silent = { ...fastPlan, silentMs: 3_600_000 };

/** What connections cost that are only open, and how long the server bears those that are slow. */
export const idle = async ({ isSmall, onProgress }: ServeBench): Promise<ServeReport> => {
  const limit = openFilesLimit();
  const many = Math.min(isSmall ? 20 : 10_000, limit - 1_000);
  const some = isSmall ? 10 : 1_000;
  const [shortMs, headersMs, bodyMs] = isSmall ? [500, 1_000, 1_000] : [10_000, 120_000, 340_000];
  const results: Idle[] = [];
  const add = async (what: string, one: Promise<Idle>): Promise<void> => {
    onProgress(`idle: ${what}`);
    const result = await one;
    onProgress(`  ${shown(result.heldBytes / 1_000)} kB each, ${result.closed} closed`);
    results.push(result);
  };
  await add(
    'no request',
    measure('no request', many, isSmall ? 500 : 30_000, () => '', { untilMs: headersMs }),
  );
  await add(
    'keep-alive',
    measure('keep-alive, after a request', some, 0, () => history, { untilMs: headersMs }),
  );
  const chatId = newChatId();
  await add(
    'streams of one call',
    measure('streams of one silent call', many, shortMs * 3, () => followOf(chatId), { chatId }),
  );
  await add(
    'streams of own calls',
    measure('streams, each of its own silent call', isSmall ? 10 : 990, shortMs * 3, () =>
      postOf(bodyOf(silent)),
    ),
  );
  const drip = { drip: 'x', untilMs: headersMs };
  await add(
    'slow headers',
    measure('a byte of a header each second', some, 0, () => begun, drip),
  );
  await add(
    'slow bodies',
    measure('a byte of a body each second', some, 0, () => begunBody, {
      drip: ' ',
      untilMs: bodyMs,
    }),
  );
  return {
    tables: [
      {
        title: `idle: connections that are only open (limit of open files of each process: ${limit})`,
        about:
          'each: memory of the server process for each of them, held (heap and buffers after a garbage collection) and rss. cpu: of the server while nothing else happens. answer: whole short answers beside them, one at a time. closed: how many the server had closed, and when it had closed half of them; streams have heartbeats every 15 s.',
        columns: [
          { name: 'connections', isWords: true },
          ...[
            'count',
            'held kB each',
            'rss kB each',
            'cpu ms/s',
            'answer p50 ms',
            'p99',
            'closed',
            'half after s',
          ].map((name) => ({ name })),
          { name: 'with', isWords: true },
        ],
        rows: results.map((it) => [
          it.what,
          String(it.count),
          shown(it.heldBytes / 1_000),
          shown(it.rssBytes / 1_000),
          shown(it.cpuPerSecond),
          shown(quantile(it.answersMs, 0.5)),
          shown(quantile(it.answersMs, 0.99)),
          String(it.closed),
          shown(it.closedMs / 1_000),
          it.status,
        ]),
      },
    ],
    raw: results,
  };
};

const history = 'GET /api/chat/nothing HTTP/1.1\r\nhost: localhost\r\n\r\n';
const begun = 'GET /api/chat/nothing HTTP/1.1\r\nhost: localhost\r\nx-slow: ';
const begunBody = `POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{`;

const measure = (
  what: string,
  count: number,
  idleMs: number,
  text: (index: number) => string,
  {
    chatId,
    drip,
    untilMs = 0,
  }: { readonly chatId?: string; readonly drip?: string; readonly untilMs?: number } = {},
): Promise<Idle> =>
  withServer('serve, in process', async (server) => {
    await answers(server, 30);
    // The call that all follow.
    if (chatId !== undefined) await openMany(server.port, 1, () => postOf(bodyOf(silent, chatId)));
    const before = await server.used(true);
    const openedAt = performance.now();
    const { closedAt, statuses, watch } = createWatch();
    const sockets = await openMany(server.port, count, text, watch);
    const dripping = setInterval(() => {
      if (drip !== undefined)
        for (const socket of sockets) if (!socket.destroyed) socket.write(drip);
    }, 1_000);
    await wait(1_000);
    const opened = await server.used(true);
    await wait(idleMs);
    const later = await server.used();
    const answersMs = await answers(server, 50);
    while (performance.now() - openedAt < untilMs && closedAt.length < count) await wait(200);
    clearInterval(dripping);
    for (const socket of sockets) socket.destroy();
    return {
      what,
      count,
      heldBytes: (opened.heldBytes - before.heldBytes) / count,
      rssBytes: (opened.rssBytes - before.rssBytes) / count,
      cpuPerSecond: idleMs === 0 ? NaN : ((later.cpuMs - opened.cpuMs) * 1_000) / idleMs,
      answersMs,
      closed: closedAt.length,
      closedMs: (closedAt[Math.floor(count / 2)] ?? NaN) - openedAt,
      status: [...statuses].join(', '),
    };
  });

const createWatch = () => {
  const closedAt: number[] = [];
  const statuses = new Set<string>();
  const watch = (socket: Socket): void => {
    socket.once('close', () => closedAt.push(performance.now()));
    socket.once('data', (bytes: Buffer) => {
      const [line = ''] = bytes.toString('latin1').split('\r\n');
      if (line.startsWith('HTTP/')) statuses.add(line.slice(9));
    });
  };
  return { closedAt, statuses, watch };
};

const answers = async ({ port }: ServerProcess, times: number): Promise<readonly number[]> => {
  const took: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const { wholeMs, isDone } = await ask(port, fastPlan);
    if (!isDone) throw new Error('An answer is not whole.');
    took.push(wholeMs);
  }
  return took;
};
