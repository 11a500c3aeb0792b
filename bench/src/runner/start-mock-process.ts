import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readSeen } from '../mock/seen.js';
import type { Mock, MockOptions } from '../mock/start-mock.js';
import { startChild } from './children.js';

/** Starts a mock in a process of its own. The package must be built. */
export const startMockProcess = async ({ isWatching = false }: MockOptions = {}): Promise<Mock> => {
  const module = fileURLToPath(new URL('../../dist/mock/process.js', import.meta.url));
  const child = startChild(module, isWatching ? ['--watch'] : []);
  const baseUrl = await new Promise<string>((resolve, reject) => {
    child.once('message', (said) => resolve(typeof said === 'string' ? said : ''));
    child.once('exit', (code) =>
      reject(new Error(`The mock has ended (exit code ${code ?? 'none'}).`)),
    );
  });
  return {
    baseUrl,
    seen: async () => readSeen(await (await fetch(new URL('/seen', baseUrl))).json()),
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
};
