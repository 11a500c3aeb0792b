import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it, jest } from '@jest/globals';

jest.setTimeout(240_000);

/** A process with a deep agent, whose lead and sub-agent write to one file. It kills itself at a point, and resumes a call that was begun. */
const script = `
  import { appendFileSync, mkdirSync } from 'node:fs';
  import { textOf } from 'millrace';
  import { journal } from 'millrace/journal';
  import { finish, text, toolCall } from 'millrace/testing';
  import { deepAgent, filesInMemory } from '@millrace/deep-agent';
  import { filesOnDisk } from '@millrace/deep-agent/disk';
  import { openFiles } from '@millrace/store';
  import { concat, defer, EMPTY, lastValueFrom } from 'rxjs';
  const [directory, kind, deadly] = process.argv.slice(1);
  const at = (point) => {
    appendFileSync(directory + '/points', point + '\\n');
    if (point === deadly) process.kill(process.pid, 'SIGKILL');
  };
  const at$ = (point) => defer(() => { at(point); return EMPTY; });
  const edit = (oldText) => toolCall('edit_file', { path: 'log', oldText, newText: oldText + oldText });
  const scripts = {
    Go: [
      [toolCall('create_plan', { goal: 'G.', steps: ['one', 'two'] })],
      [toolCall('write_file', { path: 'log', content: 'a' })],
      [edit('a')],
      [toolCall('task', { agent: 'general', task: 'sub' })],
      [toolCall('update_step', { step: 1, status: 'done' })],
      [text('Done.')],
    ],
    sub: [[toolCall('write_file', { path: 'sub', content: 'b' })], [edit('aa')], [text('Ok.')]],
  };
  const model = {
    name: 'script',
    stream$: ({ messages }) => {
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const name = textOf(messages[0]);
      return concat(at$(name + ' ' + turn), [...scripts[name][turn], finish()]);
    },
  };
  mkdirSync(directory + '/work', { recursive: true });
  const store = openFiles(directory + '/store', { leaseMs: 2000 });
  const plain = kind === 'disk' ? filesOnDisk(directory + '/work') : filesInMemory({ memory: store.memory });
  let writes = 0;
  const files = {
    ...plain,
    write$: (path, ...more) => defer(() => {
      const name = path + ' ' + typeof more[0];
      return concat(at$('before ' + name), plain.write$(path, ...more), at$('after ' + name));
    }),
  };
  const durable = journal(store.calls);
  const agent = deepAgent({ model, files, use: [durable] });
  const begun = await lastValueFrom(store.calls.driver.read$('c'), { defaultValue: [] });
  const reply = begun.length > 0 ? await durable.resume(agent, 'c') : await agent.call('Go', { callId: 'c' });
  const read = (path) => lastValueFrom(files.read$(path));
  console.log(JSON.stringify([reply.text, await read('log'), await read('sub')].map((it) => it ?? 'nothing')));
  await lastValueFrom(store.close$(), { defaultValue: undefined });
`;

const root = mkdtempSync(join(tmpdir(), 'deep-kill-'));
afterAll(() => rmSync(root, { recursive: true }));

const run = async (directory: string, kind: string, deadly: string) => {
  const args = ['--input-type=module', '-e', script, directory, kind, deadly];
  const child = spawn(process.execPath, args, {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const said = await text(child.stdout);
  const [, signal]: unknown[] = await exited;
  return { said, signal };
};

const requests = ['Go 1', 'Go 2', 'Go 3', 'Go 4', 'sub 0', 'sub 1', 'sub 2'];
const writes = ['log string', 'log function', 'sub string'].flatMap((it) => [
  `before ${it}`,
  `after ${it}`,
]);

describe.each(['memory', 'disk'])('S6: a deep agent with files in a %s', (kind) => {
  it.each([...requests, ...writes])(
    'has each effect once, if its process is killed at %j and it is resumed',
    async (deadly) => {
      const directory = mkdtempSync(join(root, 'run-'));
      expect((await run(directory, kind, deadly)).signal).toBe('SIGKILL');
      const { said } = await run(directory, kind, '');
      const [reply, log, sub]: unknown[] = JSON.parse(said || '[]');
      // On disk, a write that may have happened is reported to the model, and not repeated.
      const lost = kind === 'disk' ? deadly : '';
      expect(reply).toBe('Done.');
      expect(sub).toBe(lost === 'before sub string' ? 'nothing' : 'b');
      const logs = new Map([
        ['before log string', 'nothing'],
        ['before log function', 'a'],
      ]);
      expect(log).toBe(logs.has(lost) ? logs.get(lost) : 'aaaa');
      const points = readFileSync(join(directory, 'points'), 'utf8').trim().split('\n');
      const repeated = requests.filter((it) => points.filter((other) => other === it).length > 1);
      expect(repeated).toEqual(requests.includes(deadly) ? [deadly] : []);
    },
  );
});
