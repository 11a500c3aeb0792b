import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { done, modernShop, shop } from './shop.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-task-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Calls an agent whose tool runs as a task, or takes the result of the task that a session of another process waits for. */
const program = `
import { createAgent, suspensionsIn, textOf, toolResults } from 'millrace';
import { sessions } from 'millrace/sessions';
import { mcp } from '@millrace/mcp';
import { readFileSync, writeFileSync } from 'node:fs';
import { firstValueFrom } from 'rxjs';

const [, what, file, url] = process.argv;
/** Repeats the results that it reads. */
const model = {
  name: 'repeating',
  stream$: ({ messages }) => {
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    const said = results.length === 0
      ? { type: 'toolCall', id: 'b', name: 'shop_bake', json: '{}' }
      : { type: 'text', text: results.map(textOf).join() };
    return [said, { type: 'finish', finish: 'stop' }];
  },
};
const servers = mcp({ name: 'shop', http: { url }, timeouts: { connectMs: 5_000, suspendMs: 100 } });
const connected = servers.servers$.subscribe();
const session = sessions(createAgent({ name: 'baker', model, use: [servers] })).open('s');
const shown = ({ reason, text }) => console.log(JSON.stringify([process.pid, reason, text]));
if (what === 'start') {
  shown(await session.call('Bake.'));
  writeFileSync(file, JSON.stringify(await session.saveState()));
} else {
  await session.loadState(JSON.parse(readFileSync(file, 'utf8')));
  const [waiting] = suspensionsIn((await session.saveState()).messages);
  if (what === 'cancel') shown(await session.call('Never mind.'));
  else {
    const output = await firstValueFrom(servers.taskResult$(waiting));
    shown(await session.call(toolResults({ [waiting.toolCall.id]: output })));
  }
}
if (what === 'start') process.kill(process.pid, 'SIGKILL');
// The connection is kept until the test has seen what it waits for.
process.stdin.resume().on('end', () => connected.unsubscribe());
`;

interface Ran {
  readonly stdout: string;
  readonly signal?: string;
}

/** Runs the program in a process of its own, which keeps its connection until the promise is resolved. */
const run = async (
  what: 'start' | 'take' | 'cancel',
  file: string,
  url: string,
  kept: Promise<unknown> = Promise.resolve(),
) => {
  const arguments_ = ['--input-type=module', '-e', program, what, file, url];
  const running = promisify(execFile)(process.execPath, arguments_, {
    cwd: import.meta.dirname,
    timeout: 60_000,
  });
  void kept.then(() => running.child.stdin?.end());
  const { stdout, signal } = await running.then(
    ({ stdout: printed }): Ran => ({ stdout: printed }),
    (error: Ran) => error,
  );
  const [pid, reason, text] = JSON.parse(stdout) as [number, string, string];
  return { pid, reason, text, signal };
};

describe.each([
  ['2025-11-25', () => shop(), { status: 'completed' }],
  ['2026-07-28', modernShop, { status: 'completed', result: done }],
])('T20: a task whose process was killed (%s)', (version, create, completed) => {
  const suspended = async (name: string) => {
    const store = await create();
    const file = join(directory, `${version}-${name}.json`);
    const first = await run('start', file, store.url);
    expect(first).toMatchObject({ reason: 'suspended', signal: 'SIGKILL' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveProperty('messages.2.role', 'tool');
    expect(store.calls).not.toContain('tasks/cancel');
    return { store, file, first };
  };

  it('is polled by the next process until it has a result, which the model reads', async () => {
    const { store, file, first } = await suspended('take');
    const before = store.calls.length;
    // Still at work when the next process asks first.
    store.polled$.subscribe(() => (store.now.state = completed));
    const second = await run('take', file, store.url);
    expect(second).toMatchObject({ reason: 'answer', text: 'baked', signal: undefined });
    expect(second.pid).not.toBe(first.pid);
    expect(store.calls.slice(before, before + 2)).toEqual(['tasks/get', 'tasks/get']);
    expect(store.calls.filter((call) => call === 'tools/call')).toHaveLength(1);
    expect(store.calls).not.toContain('tasks/cancel');
  });

  it('is cancelled by a message that the next process sends', async () => {
    const { store, file } = await suspended('cancel');
    const cancelled = firstValueFrom(store.cancelled$);
    const second = await run('cancel', file, store.url, cancelled);
    expect(second).toMatchObject({ reason: 'answer', text: expect.stringContaining('Cancelled') });
    expect(store.calls.filter((call) => /call|cancel/.test(call))).toEqual([
      'tools/call',
      'tasks/cancel',
    ]);
  });
});
