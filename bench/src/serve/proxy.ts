import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { shown } from '../runner/show.js';
import { ask, followOf, newChatId, open, wholeText } from './client.js';
import { fastPlan, type Plan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { withServer } from './server-process.js';

const nginx = '/usr/sbin/nginx';

/** The part of a late answer that a client behind a proxy received. */
interface Behind {
  readonly way: string;
  readonly heartbeatMs: number;
  readonly heartbeats: number;
  readonly isDone: boolean;
  readonly wallMs: number;
  /** Whether a client that came back after a cut got the whole answer. */
  readonly rejoined: boolean | undefined;
}

/** Measures a client behind nginx whose model is silent for longer than the timeout of nginx. */
export const proxy = async ({ isSmall, onProgress }: ServeBench): Promise<ServeReport> => {
  if (!existsSync(nginx)) throw new Error(`There is no ${nginx}: apt-get install nginx.`);
  const silentMs = isSmall ? 1_800 : 70_000;
  const plan: Plan = { ...fastPlan, silentMs };
  const [often, seldom] = isSmall ? [300, 5_000] : [15_000, 90_000];
  onProgress(`proxy: ${silentMs / 1_000} s of silence, three at the same time`);
  const timeout = isSmall ? 'proxy_read_timeout 1s;' : '';
  const results = await Promise.all([
    measure('nginx', often, plan, timeout),
    measure('nginx', seldom, plan, timeout),
    measure('direct', seldom, plan, timeout),
  ]);
  return {
    tables: [
      {
        title: `proxy: a model that is silent for ${silentMs / 1_000} s, behind an nginx with defaults (proxy_read_timeout ${isSmall ? 1 : 60} s, proxy_buffering on)`,
        about:
          'whole: the client got the answer to its end. rejoined: after a cut, it asked for the running answer again, and got all of it.',
        columns: [
          { name: 'way', isWords: true },
          ...['heartbeat ms', 'heartbeats', 'ended after ms'].map((name) => ({ name })),
          { name: 'whole', isWords: true },
          { name: 'rejoined', isWords: true },
        ],
        rows: results.map(({ way, heartbeatMs, heartbeats, wallMs, isDone, rejoined }) => [
          way,
          String(heartbeatMs),
          String(heartbeats),
          shown(wallMs),
          yes(isDone),
          rejoined === undefined ? '' : yes(rejoined),
        ]),
      },
    ],
    raw: results,
  };
};

const yes = (is: boolean): string => (is ? 'yes' : 'no');

const measure = (
  way: 'nginx' | 'direct',
  heartbeatMs: number,
  plan: Plan,
  more: string,
): Promise<Behind> =>
  withServer(
    'serve, in process',
    async ({ port }) => {
      if (way === 'direct') return measureAt(port, way, heartbeatMs, plan);
      return withNginx(port, more, (at) => measureAt(at, way, heartbeatMs, plan));
    },
    { heartbeatMs },
  );

const measureAt = async (
  port: number,
  way: string,
  heartbeatMs: number,
  plan: Plan,
): Promise<Behind> => {
  const startedAt = performance.now();
  const chatId = newChatId();
  const parts: string[] = [];
  const answer = await ask(port, plan, { chatId, onText: (text) => parts.push(text) }).catch(
    () => undefined,
  );
  const wallMs = performance.now() - startedAt;
  const heartbeats = parts.join('').split(': \n\n').length - 1;
  const isDone = answer?.isDone ?? false;
  const rejoined = isDone ? undefined : await rejoin(port, chatId, plan);
  return { way, heartbeatMs, heartbeats, isDone, wallMs, rejoined };
};

const rejoin = async (port: number, chatId: string, { deltas }: Plan): Promise<boolean> => {
  const socket = await open(port);
  socket.write(followOf(chatId, 'connection: close\r\n'));
  const text = await wholeText(socket);
  return text.includes('[DONE]') && text.split('"text-delta"').length - 1 === deltas;
};

/** Starts an nginx in front of a port, with a folder of its own, and ends it after the work. */
const withNginx = async <T>(
  upstream: number,
  more: string,
  work: (port: number) => Promise<T>,
): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-nginx-'));
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const { uid, username } = userInfo();
  const config = `
    daemon off;
    pid ${folder}/pid;
    ${uid === 0 ? `user ${username};` : ''}
    worker_processes 1;
    error_log stderr;
    events {}
    http {
      access_log off;
      ${temporary.join(' ')}
      server {
        listen 127.0.0.1:${port};
        location / { proxy_pass http://127.0.0.1:${upstream}; ${more} }
      }
    }`;
  await writeFile(join(folder, 'nginx.conf'), config);
  const child = spawn(nginx, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const gone = once(child, 'exit');
  try {
    await answering(
      port,
      () => child.exitCode !== null,
      () => errors,
    );
    return await work(port);
  } finally {
    child.kill('SIGTERM');
    await gone;
    await rm(folder, { recursive: true, force: true });
  }
};

const answering = async (
  port: number,
  hasEnded: () => boolean,
  errors: () => string,
): Promise<void> => {
  for (;;) {
    if (hasEnded()) throw new Error(`nginx has ended. ${errors()}`);
    const socket = await open(port).catch(() => undefined);
    socket?.destroy();
    if (socket !== undefined) return;
    await wait(20);
  }
};

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen({ port: 0, host: '127.0.0.1' }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
