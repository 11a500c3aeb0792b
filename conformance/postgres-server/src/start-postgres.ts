import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** A server for tests. */
export interface TestServer {
  /** With a password in it. */
  readonly url: string;
  readonly password: string;
  /** Ends it by a signal, and starts it again on the same port after a time. Absent for a server that was there already. */
  restart?(signal: 'SIGINT' | 'SIGQUIT', downMs: number): Promise<void>;
  /** Stops it and removes what it has written. A server that was there already stays. */
  stop(): Promise<void>;
}

/** Starts a server of its own in a new directory, on a port that is free; or takes the one that `MILLRACE_TEST_POSTGRES` names. */
export const startPostgres = async (): Promise<TestServer> => {
  const given = process.env['MILLRACE_TEST_POSTGRES'];
  if (given !== undefined && given !== '') {
    return { url: given, password: new URL(given).password, stop: () => Promise.resolve() };
  }
  const binaries = findBinaries();
  const user = await unprivileged();
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'));
  const passwordFile = join(directory, 'password');
  await writeFile(passwordFile, `${password}\n`);
  if (user !== undefined) {
    await Promise.all([directory, passwordFile].map((path) => chown(path, user.uid, user.gid)));
  }
  const data = join(directory, 'data');
  const auth = ['--auth=scram-sha-256', '--username=tester', `--pwfile=${passwordFile}`];
  const [command, ...first] = as(user);
  const initdb = [...first, join(binaries, 'initdb'), '-D', data, ...auth, '-E', 'UTF8', '-N'];
  await promisify(execFile)(command ?? 'env', initdb, { cwd: directory });
  const binary = join(binaries, 'postgres');
  const started = await startOnFreePort(user, binary, data);
  const { port } = started;
  let { server } = started;
  return {
    restart: async (signal, downMs) => {
      await ended(server, signal);
      await sleep(downMs);
      server = startOn(port, user, binary, data);
      const said = await untilReady(server);
      if (said !== undefined) throw new Error(`PostgreSQL did not start again: ${said}`);
    },
    url: `postgres://tester:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
    password,
    stop: async () => {
      await ended(server, 'SIGQUIT');
      await rm(directory, { recursive: true, force: true });
    },
  };
};

/** One that is changed by being written into a URL. */
const password = 'correct/horse@battery';

const findBinaries = (): string => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.sort((a, b) => Number(b) - Number(a)).map((it) => join(debian, it, 'bin')),
  ];
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')));
  if (found !== undefined) return found;
  throw new Error(
    'These tests need PostgreSQL. Install it, as with `apt-get install postgresql`, or set MILLRACE_TEST_POSTGRES to the URL of a database that may be written to.',
  );
};

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Postgres refuses to be run by root: Debian's package comes with a user for it. */
const unprivileged = async (): Promise<User | undefined> => {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = async (flag: string): Promise<number> =>
    Number((await promisify(execFile)('id', [flag, 'postgres'])).stdout);
  return { uid: await idOf('-u'), gid: await idOf('-g') };
};

/** Where it can be had, the server ends with the process that has started it, however that ends. */
const as = (user: User | undefined): readonly string[] => {
  if (process.platform !== 'linux') return ['env'];
  const ids = user === undefined ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`];
  const groups = user === undefined ? [] : ['--clear-groups'];
  return ['setpriv', '--pdeathsig=INT', ...ids, ...groups];
};

const startOnFreePort = async (
  user: User | undefined,
  postgres: string,
  data: string,
  tries = 5,
): Promise<{ readonly server: ChildProcess; readonly port: number }> => {
  const port = await freePort();
  const server = startOn(port, user, postgres, data);
  const said = await untilReady(server);
  if (said === undefined) return { server, port };
  if (tries > 1) return startOnFreePort(user, postgres, data, tries - 1);
  throw new Error(`PostgreSQL did not start: ${said}`);
};

const startOn = (
  port: number,
  user: User | undefined,
  postgres: string,
  data: string,
): ChildProcess => {
  const [command = 'env', ...first] = as(user);
  const settings = [
    ...['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', 'fsync=off'],
    ...['full_page_writes=off', 'shared_buffers=16MB', 'max_connections=50'],
  ];
  return spawn(
    command,
    [...first, postgres, '-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    { cwd: data.slice(0, data.lastIndexOf('/')), stdio: ['ignore', 'ignore', 'pipe'] },
  );
};

/** What it has said where it has ended; nothing, where it is ready. */
const untilReady = (server: ChildProcess): Promise<string | undefined> =>
  new Promise((resolve) => {
    const said: string[] = [];
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said.push(text);
      if (said.join('').includes('ready to accept connections')) resolve(undefined);
    });
    server.once('error', (error) => resolve(error.message));
    server.once('exit', () => resolve(said.join('')));
  });

const ended = (server: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> =>
  new Promise((resolve) => {
    server.once('exit', () => resolve());
    server.kill(signal);
  });

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new Error('There is no port.'));
      });
    });
  });
