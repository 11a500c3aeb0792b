import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import {
  bytes,
  type FaultServer,
  stall,
  startFaultServer,
  streamed,
  streamHeaders,
  streamOf,
} from '@millrace/fault-server';
import { type Home, makeHome } from './runs.test-support.js';

// Processes may have to wait for a busy machine.
jest.setTimeout(240_000);

const program = fileURLToPath(new URL('../../dist/bundle/bin.js', import.meta.url));
const calculation = {
  text: 'Let me count.',
  toolCalls: [{ name: 'calculator', arguments: '{"expression":"6 * 7"}' }],
};
const begun = streamOf('chat', { text: 'It is 42.' }).slice(0, 2).join('');

let server: FaultServer;
let home: Home;
const children: ChildProcess[] = [];

beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());
beforeEach(() => {
  home = makeHome();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await home.remove();
});

/** Starts the program with a model that stalls in its answer to a calculation, and waits for that; then it answers. */
const stalled = async () => {
  const { url } = await server.play({
    responses: [
      streamed(streamOf('chat', calculation)),
      [streamHeaders, bytes(begun), stall()],
      streamed(streamOf('chat', { text: 'It is 42.' })),
    ],
  });
  const child = start(url, '--model', 'big', 'What is 6 * 7?');
  await child.wrote(/\nIt is/);
  return { ...child, url };
};

/** Starts the program, and tells what it writes. */
const start = (url: string, ...argv: readonly string[]) => {
  const env = {
    PATH: process.env['PATH'],
    HOME: home.path,
    OPENAI_BASE_URL: url,
    OPENAI_API_KEY: 'sk-key',
  };
  const child = spawn(process.execPath, [program, ...argv], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (written += text));
  }
  const wrote = async (what: RegExp): Promise<void> => {
    while (!what.test(written)) {
      await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data'), ended]);
      if (child.exitCode !== null && !what.test(written)) throw new Error(written);
    }
  };
  const ended = once(child, 'close');
  return { child, wrote, ended, written: () => written };
};

describe('a run of the program', () => {
  it('S8: prints at a signal how to resume, and resumes there', async () => {
    const { child, wrote, ended, written, url } = await stalled();
    child.kill('SIGTERM');
    await wrote(/Shutting down: waiting up to 5 s for the current step/);
    child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
    const [, command = ''] =
      /\nStopped\. Resume it: npx @millrace\/cli (resume \w+)\n/.exec(written()) ?? [];
    expect((await home.ran(['runs'])).out).toMatch(/ unfinished [^]* is unfinished\. Resume it: /);
    const resumed = start(url, ...command.split(' '));
    expect(await resumed.ended).toEqual([0, null]);
    expect(resumed.written()).toMatch(/› What is 6 \* 7\?\n[^]*\nIt is 42\.\n/);
    expect(resumed.written()).not.toContain('→ calculator');
  });

  it('S6: resumes after it was killed', async () => {
    const { child, ended, url } = await stalled();
    child.kill('SIGKILL');
    await ended;
    const [id = ''] = await home.ids();
    // Where it is seen that the process is gone, nobody waits until its lease is over.
    if (existsSync('/proc/self')) {
      expect((await home.ran(['replay', id, '--speed', 'max'])).err).toMatch(
        /^It is unfinished\. Resume it/,
      );
      expect((await home.ran(['runs'])).out).toMatch(/ unfinished /);
    }
    const resumed = start(url, 'resume', id);
    expect(await resumed.ended).toEqual([0, null]);
    expect(resumed.written()).toMatch(/\nIt is 42\.\n/);
    expect((await home.ran(['runs'])).out).toMatch(/ ended /);
  });

  it('S7: can be followed, and is not resumed by another process', async () => {
    const { child, url } = await stalled();
    const [id = ''] = await home.ids();
    expect((await home.ran(['runs'])).out).toMatch(/ running /);
    const follower = start(url, 'replay', id, '--follow');
    await follower.wrote(/\nIt is/);
    const second = start(url, 'resume', id);
    expect(await second.ended).toEqual([1, null]);
    expect(second.written()).toContain(
      `running this run or its conversation. Follow it: npx @millrace/cli replay ${id.slice(0, 8)} --follow`,
    );
    child.kill('SIGINT');
    expect(await follower.ended).toEqual([0, null]);
    expect(follower.written()).toMatch(/\ninterrupted after /);
  });

  it.each([
    ['SIGHUP', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
  ] as const)(
    'S8: is ended immediately by %s and %s, and can be resumed',
    async (first, second) => {
      const { child, wrote, ended, written } = await stalled();
      child.kill(first);
      await wrote(/Shutting down: waiting up to/);
      child.kill(second);
      expect(await ended).toEqual([143, null]);
      expect(written()).toMatch(/\nStopped\. Resume it: npx @millrace\/cli resume \w{8}\n$/);
      expect((await home.ran(['runs'])).out).toMatch(/ unfinished /);
    },
  );

  it.each([
    ['SIGTERM', ['--speed', '0.2'], 143],
    ['SIGHUP', ['--follow'], 143],
    ['SIGINT', ['--follow'], 130],
  ] as const)(
    'S8: stops showing a run at %s with %j, and the run continues',
    async (signal, how, code) => {
      const { child } = await stalled();
      const [id = ''] = await home.ids();
      const shown = start('', 'replay', id, ...how);
      // What listens for signals is there with the first event.
      await shown.wrote(/→ calculator/);
      shown.child.kill(signal);
      expect(await shown.ended).toEqual([code, null]);
      expect(shown.written()).not.toMatch(/error|Ending|Stopped|✗/);
      expect(child.exitCode).toBeNull();
      expect((await home.ran(['runs'])).out).toMatch(/ running /);
    },
  );
});
