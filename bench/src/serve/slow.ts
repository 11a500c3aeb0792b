import { setTimeout as wait } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { now } from '../one-clock.js';
import { quantile } from '../quantile.js';
import { shown } from '../runner/show.js';
import { ask, bodyOf, followOf, newChatId, open, postOf } from './client.js';
import { fastPlan, type Plan, stampsIn } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import type { ServerName } from './server.js';
import { type ServerProcess, withServer } from './server-process.js';

/** What a server needed while one client read fast, and others hardly at all. */
interface Slow {
  readonly server: string;
  readonly calls: 'one call' | 'own calls';
  readonly readers: number;
  /** From the emission of each delta to its arrival at the fast reader. */
  readonly delaysMs: readonly number[];
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly heldBytes: number;
  readonly rssBytes: number;
  /** The most of it, looked at twice a second. */
  readonly peakBytes: number;
}

/** What clients that do not read cost the server, and the one that does. */
export const slow = async ({ isSmall, onProgress }: ServeBench): Promise<ServeReport> => {
  const counts = isSmall ? [0, 5] : [0, 50, 100, 200];
  const shared: Plan = {
    ...fastPlan,
    ...(isSmall ? { deltas: 200 } : { deltas: 5_000 }),
    ...{ size: 1_000, burst: 5, everyMs: 5, isStamped: true },
  };
  const own: Plan = {
    ...shared,
    ...{ deltas: isSmall ? 50 : 200, size: 10_000, burst: 2, everyMs: 100 },
  };
  const results: Slow[] = [];
  for (const calls of ['one call', 'own calls'] as const) {
    for (const name of ['serve, in process', 'serve, files'] as const) {
      for (const readers of counts) {
        onProgress(`slow: ${name}, ${calls}, ${readers} readers`);
        const result = await measure(name, readers, calls, calls === 'one call' ? shared : own);
        const delays = [0.5, 0.99].map((part) => shown(quantile(result.delaysMs, part))).join(', ');
        onProgress(`  delay ${delays} ms, ${shown(result.heldBytes / 1e6)} MB held`);
        results.push(result);
      }
    }
  }
  const mb = (bytes: number): string => shown(bytes / 1e6);
  return {
    tables: [
      {
        title: 'slow: clients that hardly read, beside one that does',
        about: `one call: all follow one answer of ${shared.deltas} deltas of ${shared.size} characters, ${shared.burst} every ${shared.everyMs} ms. own calls: each has an answer of ${own.deltas} deltas of ${own.size}, ${own.burst} every ${own.everyMs} ms. Half of the slow ones read 8 bytes a second, the others nothing. delay: from the emission of a delta to its arrival at the fast reader. held: heap and buffers after a garbage collection once the fast reader has its answer, with the slow ones still there; each: what it is more than without slow ones, for each of them.`,
        columns: [
          { name: 'server', isWords: true },
          { name: 'answers', isWords: true },
          ...[
            'slow',
            'delay p50 ms',
            'p99',
            'max',
            'wall ms',
            'cpu ms',
            'held MB',
            'each kB',
            'rss MB',
            'peak MB',
          ].map((name) => ({ name })),
        ],
        rows: results.map((it) => {
          const alone = results.find(
            ({ server, calls, readers }) =>
              server === it.server && calls === it.calls && readers === 0,
          );
          const each = (it.heldBytes - (alone?.heldBytes ?? NaN)) / it.readers;
          return [
            it.server,
            it.calls,
            String(it.readers),
            ...[0.5, 0.99, 1].map((part) => shown(quantile(it.delaysMs, part))),
            shown(it.wallMs),
            shown(it.cpuMs),
            mb(it.heldBytes),
            it.readers === 0 ? '' : shown(each / 1_000),
            mb(it.rssBytes),
            mb(it.peakBytes),
          ];
        }),
      },
    ],
    raw: results.map(({ delaysMs, ...rest }) => ({
      ...rest,
      delayMs: [0.5, 0.99, 1].map((part) => quantile(delaysMs, part)),
    })),
  };
};

const measure = (
  name: ServerName,
  readers: number,
  calls: Slow['calls'],
  plan: Plan,
): Promise<Slow> =>
  withServer(name, async (server) => {
    // The code is warm before.
    await ask(server.port, { ...plan, deltas: Math.min(plan.deltas, 2_000), everyMs: 0 });
    const before = await server.used(true);
    const chatId = newChatId();
    const delaysMs: number[] = [];
    let tail = '';
    const startedAt = performance.now();
    const peak = watchPeak(server);
    const sockets: Promise<Socket>[] = [];
    const comes = (): void => {
      for (let reader = 0; reader < readers; reader += 1) {
        const text = calls === 'one call' ? followOf(chatId) : postOf(bodyOf(plan));
        sockets.push(slowReader(server.port, text, reader % 2 === 0));
      }
    };
    const answer = await ask(server.port, plan, {
      chatId,
      onText: (text) => {
        if (sockets.length === 0) comes();
        const at = now();
        const whole = `${tail}${text}`;
        const end = whole.lastIndexOf('\n\n') + 1;
        for (const stamp of stampsIn(whole.slice(0, end))) delaysMs.push(at - stamp);
        tail = whole.slice(end);
      },
    });
    const wallMs = performance.now() - startedAt;
    if (!answer.isDone || delaysMs.length !== plan.deltas)
      throw new Error('An answer is not whole.');
    const peakBytes = await peak.stop();
    const after = await server.used(true);
    const cpuMs = after.cpuMs - before.cpuMs;
    const { heldBytes, rssBytes } = after;
    for (const socket of await Promise.all(sockets)) socket.destroy();
    return {
      server: name,
      calls,
      readers,
      delaysMs,
      wallMs,
      cpuMs,
      heldBytes,
      rssBytes,
      peakBytes,
    };
  });

/** Opens a client that reads 8 bytes a second, or nothing. */
const slowReader = async (port: number, text: string, isReading: boolean): Promise<Socket> => {
  const socket = await open(port);
  socket.pause();
  socket.write(text);
  if (isReading) {
    const timer = setInterval(() => void socket.read(8), 1_000);
    socket.once('close', () => clearInterval(timer));
  }
  return socket;
};

const watchPeak = (server: ServerProcess) => {
  let most = 0;
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted) {
      most = Math.max(most, (await server.used()).rssBytes);
      await wait(500);
    }
  })();
  return {
    stop: async () => {
      over.abort();
      await looking;
      return most;
    },
  };
};
