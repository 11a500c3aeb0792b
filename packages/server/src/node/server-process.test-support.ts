import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const children: ChildProcess[] = [];

/** For `afterEach`. */
export const killServers = (): void => {
  children.splice(0).forEach((child) => child.kill('SIGKILL'));
};

/** Runs a script that prints the URL of its server in a process of its own. It gets the directory, a text and `ends`. */
export const startServer = async (
  script: string,
  directory: string,
  says: string,
  ends: 'yes' | 'no',
) => {
  const arguments_ = ['--input-type=module', '-e', script, directory, says, ends];
  const child = spawn(process.execPath, arguments_, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const exited = once(child, 'exit');
  const line = once(reader, 'line');
  await Promise.race([line, exited.then(() => Promise.reject(new Error('It did not start.')))]);
  return { child, url: lines[0] ?? '', exited, lines };
};

export const inDirectory = async (test: (directory: string) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-server-'));
  try {
    await test(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
