import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isRecord, parsedJson } from 'millrace/values';
import { defer, lastValueFrom, retry, throwError, timer } from 'rxjs';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** A Restate server of this test file. It listens on Unix sockets in a temporary directory, so it needs no ports. */
export interface RestateServer {
  /** Serves the handlers of an endpoint, such as `http://127.0.0.1:4000`. */
  register(url: string): Promise<void>;
  /** Calls a handler through the ingress and waits for its result. A string is sent as it is, anything else as JSON. */
  call(path: string, body: unknown): Promise<Answer>;
  /** Calls a handler without waiting. Resolves to the id of the invocation. */
  send(path: string, body: unknown): Promise<string>;
  /** Waits for the result of an invocation. */
  attach(invocationId: string): Promise<Answer>;
  cancel(invocationId: string): Promise<void>;
  /** Kills the server, and starts it again with its data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const binary = (): string => {
  const own = createRequire(import.meta.url);
  const server = createRequire(own.resolve('@restatedev/restate-server/package.json'));
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  return join(dirname(server.resolve(`${name}/package.json`)), 'bin', 'restate-server');
};

const config = `
cluster-name = "test"
node-name = "n"
default-num-partitions = 1
disable-telemetry = true
rocksdb-total-memory-size = "64 MiB"
log-filter = "error"
[admin]
disable-web-ui = true
`;

export const startRestate = async (): Promise<RestateServer> => {
  const directory = await mkdtemp(join(tmpdir(), 'restate-'));
  const configFile = join(directory, 'config.toml');
  await writeFile(configFile, config);
  const admin = join(directory, 'n', 'admin.sock');
  const ingress = join(directory, 'n', 'ingress.sock');
  const start = async (): Promise<ChildProcess> => {
    const options = ['--config-file', configFile, '--base-dir', directory];
    const child = spawn(binary(), [...options, '--listen-mode', 'unix', '--no-logo'], {
      stdio: 'ignore',
      env: {},
    });
    children.add(child);
    await untilDone(child, () => ok(ask(admin, 'GET', '/health')));
    await untilDone(child, () => ok(ask(ingress, 'GET', '/restate/health')));
    return child;
  };
  const kill = async (): Promise<void> => {
    const exited = once(server, 'exit');
    if (server.kill('SIGKILL')) await exited;
    children.delete(server);
  };
  let server = await start();
  return {
    register: async (uri) => {
      await untilDone(server, () => ok(ask(admin, 'POST', '/deployments', { uri })));
    },
    call: (path, body) => ask(ingress, 'POST', path, body),
    send: async (path, body) => {
      const accepted = await ok(ask(ingress, 'POST', `${path}/send`, body));
      return String(isRecord(accepted) ? accepted['invocationId'] : undefined);
    },
    attach: (id) => ask(ingress, 'GET', `/restate/invocation/${id}/attach`),
    cancel: async (id) => {
      await ok(ask(admin, 'PATCH', `/invocations/${id}/cancel`));
    },
    restart: async () => {
      await kill();
      server = await start();
    },
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
};

/** Not even a failed test leaves a server behind. */
const children = new Set<ChildProcess>();
process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));

const ask = async (
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> => {
  const headers = { 'content-type': 'application/json', host: 'localhost' };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({ socketPath, method, path, headers, agent: false }, resolve);
    sent.on('error', reject);
    sent.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const answered = await text(response);
  return { status: response.statusCode ?? 0, body: parsedJson(answered) ?? answered };
};

const ok = async (answer: Promise<Answer>): Promise<unknown> => {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`Restate answered ${status}: ${JSON.stringify(body)}`);
  return body;
};

/** Tries again until it succeeds or the server has ended. */
const untilDone = <T>(server: ChildProcess, work: () => Promise<T>): Promise<T> =>
  lastValueFrom(
    defer(work).pipe(
      retry({
        delay: (error: unknown) => (server.exitCode === null ? timer(20) : throwError(() => error)),
      }),
    ),
  );
