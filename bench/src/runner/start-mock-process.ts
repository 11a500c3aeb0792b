import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isShape, isText } from '../guard.js';
import { readSeen } from '../mock/seen.js';
import type { Mock, MockOptions } from '../mock/start-mock.js';
import { startChild } from './children.js';

/** Starts a mock in a process of its own. The package must be built. */
export const startMockProcess = async ({
  isWatching = false,
  isTls = false,
}: MockOptions = {}): Promise<Mock> => {
  const module = fileURLToPath(new URL('../../dist/mock/process.js', import.meta.url));
  const child = startChild(module, [
    ...(isWatching ? ['--watch'] : []),
    ...(isTls ? ['--tls'] : []),
  ]);
  const started = await nextMessage(child);
  if (!isStarted(started)) throw new Error('The mock does not say where it is.');
  return {
    ...started,
    seen: async () => {
      const seen = nextMessage(child);
      child.send('seen');
      return readSeen(await seen);
    },
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
};

const isStarted = isShape<Pick<Mock, 'baseURL' | 'certificate'>>({
  baseURL: isText,
  certificate: (value) => value === undefined || isText(value),
});

const nextMessage = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) =>
      reject(new Error(`The mock has ended (exit code ${code ?? 'none'}).`)),
    );
  });
