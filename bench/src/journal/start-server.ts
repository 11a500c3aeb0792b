import { execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

/** A Postgres of its own. */
export interface Server {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/**
 * Makes a cluster in a folder and starts it, with the settings that Postgres comes with: a transaction is on the disk before it is answered. It is reached by
 * a socket in that folder.
 */
export const startServer = async (folder: string): Promise<Server> => {
  const binaries = findBinaries();
  if (binaries === undefined) throw new Error('There is no PostgreSQL here.');
  const [command, ...first] = await asUser(folder);
  const data = join(folder, 'data');
  const run = promisify(execFile);
  const initdb = ['-D', data, '--auth=trust', '--username=bench', '-E', 'UTF8'];
  await run(command, [...first, join(binaries, 'initdb'), ...initdb], { cwd: folder });
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`];
  const server = spawn(
    command,
    [...first, join(binaries, 'postgres'), '-D', data, ...settings.flatMap((it) => ['-c', it])],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    let said = '';
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('ready to accept connections')) resolve();
    });
    server.once('exit', () => reject(new Error(`PostgreSQL did not start: ${said}`)));
  });
  return {
    url: `postgres://bench@localhost/postgres?host=${encodeURIComponent(folder)}`,
    stop: () => {
      server.kill('SIGQUIT');
      return ended;
    },
  };
};

/** Tells whether a server can be started here. */
export const hasPostgres = (): boolean => findBinaries() !== undefined;

/** Debian's are not in the path. */
const findBinaries = (): string | undefined => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  return [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.toSorted((a, b) => Number(b) - Number(a)).map((it) => join(debian, it, 'bin')),
  ].find((path) => existsSync(join(path, 'initdb')) && existsSync(join(path, 'postgres')));
};

/** Postgres refuses to be run by root: Debian's package comes with a user for it. On Linux the server ends with this process, however that ends. */
const asUser = async (folder: string): Promise<readonly [string, ...(readonly string[])]> => {
  if (process.platform !== 'linux') return ['env'];
  const dying = ['setpriv', '--pdeathsig=INT'] as const;
  if (process.getuid?.() !== 0) return dying;
  const idOf = async (flag: string): Promise<number> =>
    Number((await promisify(execFile)('id', [flag, 'postgres'])).stdout);
  const [uid, gid] = [await idOf('-u'), await idOf('-g')];
  await chown(folder, uid, gid);
  return [...dying, `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
};
