import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, interval, take, timeout } from 'rxjs';
import { mcp } from './index.js';
import { hostile, ran } from './servers.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-group-'));
afterAll(() => rmSync(directory, { recursive: true }));
const server = join(import.meta.dirname, 'hostile-server.test-support.mjs');
const entry = join(import.meta.dirname, '../dist/bundle/client.js');

const isAlive = (pid: number): boolean => {
  try {
    // A process that has ended stays until its parent asks for it.
    return process.kill(pid, 0) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

const ended = (pid: number): Promise<unknown> =>
  firstValueFrom(
    interval(20).pipe(
      filter(() => !isAlive(pid)),
      take(1),
      timeout(5_000),
    ),
  );

/** A program with a server that ends neither with its input nor, if it is deaf, with SIGTERM. Prints their ids. */
const program = join(directory, 'program.mjs');
writeFileSync(
  program,
  `import { mcpTools } from ${JSON.stringify(entry)};
const [how, deaf, shell] = process.argv.slice(2);
const args = [${JSON.stringify(server)}, 'stubborn', deaf];
const stdio = shell === 'shell'
  ? { command: '/bin/sh', args: ['-c', '"$0" "$@"; true', process.execPath, ...args] }
  : { command: process.execPath, args };
let printed = false;
mcpTools({ name: 'bad', stdio }).subscribe(([tool]) => {
  if (printed) return;
  printed = true;
  const handlers = ['SIGTERM', 'SIGINT', 'SIGHUP', 'exit', 'uncaughtException', 'beforeExit'].map((it) => process.listenerCount(it));
  if (how === 'handled') process.on('SIGTERM', () => setTimeout(() => process.exit(3), 100));
  console.log(JSON.stringify({ server: Number(tool.description), handlers }));
  if (how === 'exit') process.exit(7);
  if (how === 'throw') setTimeout(() => { throw new Error('x'); });
});
`,
);

const started = async (
  ...args: readonly string[]
): Promise<{ parent: ChildProcess; pid: number; handlers: readonly number[] }> => {
  const parent = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  for await (const chunk of parent.stdout) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  const { server: pid, handlers } = JSON.parse(text) as { server: number; handlers: number[] };
  return { parent, pid, handlers };
};

type End = readonly [how: string, signal: NodeJS.Signals | undefined, code: number | null];

const ends: readonly End[] = [
  ['exit', undefined, 7],
  ['throw', undefined, 1],
  ['SIGTERM', 'SIGTERM', null],
  ['SIGINT', 'SIGINT', null],
  ['SIGHUP', 'SIGHUP', null],
  ['SIGKILL', 'SIGKILL', null],
  ['handled', 'SIGTERM', 3],
];

describe('T20: the child processes of a program that ends', () => {
  it.each(
    ends.flatMap(([how, signal, code]) =>
      [
        ['', ''],
        ['deaf', 'shell'],
      ].map(([deaf, shell]) => [how, deaf, shell, signal, code] as const),
    ),
  )(
    'by %s end with it (%s %s), and it ends as without them',
    async (how, deaf, shell, signal, code) => {
      const { parent, pid, handlers } = await started(how, deaf ?? '', shell ?? '');
      const exit =
        parent.exitCode === null && parent.signalCode === null ? once(parent, 'exit') : undefined;
      expect(handlers).toEqual([0, 0, 0, 0, 0, 0]);
      if (signal !== undefined) parent.kill(signal);
      await exit;
      expect([parent.exitCode, parent.signalCode]).toEqual([code, code === null ? signal : null]);
      await ended(pid);
    },
  );
});

describe('T20: the child processes of a connection that ends', () => {
  it.each(['', 'shell'])(
    'end with what they have started: %s',
    async (shell) => {
      const args = [server, 'stubborn', 'deaf'];
      const stdio =
        shell === ''
          ? { command: process.execPath, args }
          : { command: '/bin/sh', args: ['-c', '"$0" "$@"; true', process.execPath, ...args] };
      const { descriptions } = await ran([mcp({ name: 'bad', stdio })]);
      await ended(Number(descriptions['bad_use']));
    },
    20_000,
  );

  it('leave no listener and no process', async () => {
    const before = process.eventNames().map((name) => process.listenerCount(name));
    for (let run = 0; run < 5; run += 1)
      await ran([mcp(hostile('calm'), hostile('calm', { name: 'two' }))]);
    expect(process.eventNames().map((name) => process.listenerCount(name))).toEqual(before);
  });
});
