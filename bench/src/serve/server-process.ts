import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isNumber, isShape } from '../guard.js';
import { startChild } from '../runner/children.js';
import type { Usage } from './process.js';
import type { ServerName, ServerOptions } from './server.js';

/** A server in a process of its own. */
export interface ServerProcess {
  readonly name: ServerName;
  readonly port: number;
  readonly used: (isCollecting?: boolean) => Promise<Usage>;
}

/** Starts a server in a fresh process and a fresh folder, works with it, and ends it. */
export const withServer = async <T>(
  name: ServerName,
  work: (server: ServerProcess) => Promise<T>,
  options: Partial<Omit<ServerOptions, 'name' | 'folder'>> = {},
): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-serve-'));
  const all: ServerOptions = { name, folder, heartbeatMs: 15_000, maxCalls: 1_000, ...options };
  const module = fileURLToPath(new URL('../../dist/serve/process.js', import.meta.url));
  const child = startChild(module, [JSON.stringify(all)]);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = `${errors}${text}`.slice(-2_000);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code) =>
      reject(new Error(`The server has ended (${code ?? 'killed'}). ${errors}`)),
    );
  });
  ended.catch(() => undefined);
  const next = (): Promise<unknown> =>
    Promise.race([ended, new Promise((resolve) => child.once('message', resolve))]);
  try {
    const started = await next();
    if (!isStarted(started)) throw new Error('The server does not say where it is.');
    return await work({
      name,
      port: started.port,
      used: async (isCollecting = false) => {
        const answer = next();
        child.send(isCollecting);
        const used = await answer;
        if (!isUsage(used)) throw new Error('The server does not say what it has used.');
        return used;
      },
    });
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    await rm(folder, { recursive: true, force: true });
  }
};

const isStarted = isShape<{ readonly port: number }>({ port: isNumber });

/** NaN is null in a message. */
const isUsage = isShape<Usage>({
  cpuMs: isNumber,
  rssBytes: isNumber,
  heldBytes: (value): value is number => value === null || isNumber(value),
  externalBytes: isNumber,
});
