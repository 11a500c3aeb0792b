import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { clientOf, readStream, saying, shortOf } from './clients.test-support.js';

/** Serves an agent over a directory of files. Its model says the text of an argument, or asks if it is told to. */
const script = `
import { createAgent, suspend, tool } from 'millrace';
import { a2a } from '@millrace/a2a/server';
import { serve } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { concat, NEVER, of } from 'rxjs';

const [, directory, says, then] = process.argv;
const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend('Which city?') });
const finish = of({ type: 'finish', finish: 'stop' });
const model = {
  name: 'told',
  stream$: () => {
    if (then === 'asks') return concat(of({ type: 'toolCall', id: 'a', name: 'ask', input: {} }), finish);
    return concat(of({ type: 'text', text: says }), then === 'ends' ? finish : NEVER);
  },
};
const options = { port: 0, closeMs: 100, store: openFiles(directory), protocols: [a2a()] };
serve(createAgent({ name: 'helper', model, tools: [ask] }), options).subscribe(({ url }) => console.log(url));
`;

const children: ChildProcess[] = [];
afterEach(() => {
  children.splice(0).forEach((child) => child.kill('SIGKILL'));
});

const start = async (directory: string, says: string, then: 'ends' | 'hangs' | 'asks') => {
  const arguments_ = ['--input-type=module', '-e', script, directory, says, then];
  const child = spawn(process.execPath, arguments_, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const exited = once(child, 'exit');
  const line = once(createInterface(child.stdout), 'line');
  const ready = exited.then(() => Promise.reject(new Error('It did not start.')));
  const [url]: unknown[] = await Promise.race([line, ready]);
  return { client: await clientOf({ url: String(url) }), child, exited };
};

const inDirectory = async (test: (directory: string) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-a2a-'));
  try {
    await test(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

describe('a server that is killed', () => {
  it('in the middle of an answer: the task continues in the next one, and its client finds it', () =>
    inDirectory(async (directory) => {
      const first = await start(directory, 'Broken', 'hangs');
      const stream = first.client.sendMessageStream(saying('A story?'));
      const { task } = await readStream(stream, (line) => line === '= Broken');
      first.child.kill('SIGKILL');
      await first.exited;

      const second = await start(directory, 'Longer', 'hangs');
      const joined = second.client.resubscribeTask({ tenant: '', id: task.id });
      const seen = await readStream(joined, (_, answer) => answer === 'Longer');
      expect(seen.answer).toBe('Longer');
      second.child.kill('SIGKILL');
      await second.exited;

      const { client } = await start(directory, 'Whole.', 'ends');
      const last = await readStream(client.resubscribeTask({ tenant: '', id: task.id })).catch(
        () => undefined,
      );
      // It may have ended before the client came.
      if (last !== undefined)
        expect([last.answer, last.lines.at(-1)]).toEqual(['Whole.', 'completed']);
      const found = await client.getTask({ tenant: '', id: task.id });
      expect(shortOf(found)).toEqual({ state: 'completed', answer: 'Whole.', says: '' });
      expect(found.contextId).toBe(task.contextId);
    }));

  it('while a task waits for input: the next one takes it', () =>
    inDirectory(async (directory) => {
      const first = await start(directory, '', 'asks');
      const { task, lines } = await readStream(first.client.sendMessageStream(saying('Book it.')));
      expect(lines.at(-1)).toMatch(/^input_required Which city\?/);
      first.child.kill('SIGKILL');
      await first.exited;

      const { client } = await start(directory, 'Booked.', 'ends');
      const { id } = task;
      const asked = await client.getTask({ tenant: '', id });
      expect(shortOf(asked)).toMatchObject({ state: 'input_required' });
      const ended = await readStream(client.sendMessageStream(saying('Oslo', { taskId: id })));
      expect([ended.answer, ended.task.id]).toEqual(['Booked.', id]);
      expect(shortOf(await client.getTask({ tenant: '', id })).answer).toBe('Booked.');
    }));
});
