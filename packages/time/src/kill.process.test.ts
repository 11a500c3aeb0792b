import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, jest } from '@jest/globals';

jest.setTimeout(240_000);

/** A process that asks once, if it is the first one, and wakes what is due. */
const script = `
  import { createAgent } from 'millrace';
  import { journal } from 'millrace/journal';
  import { keepSessions } from 'millrace/sessions';
  import { finish, text, toolCall } from 'millrace/testing';
  import { openFiles } from '@millrace/store';
  import { sleepLayer, wake$ } from '@millrace/time';
  import { NEVER, of } from 'rxjs';
  const [directory, role] = process.argv.slice(1);
  const store = openFiles(directory, { leaseMs: 2000 });
  const say = (line) => process.stdout.write(line + '\\n');
  const model = {
    name: 'sleeper',
    stream$: ({ messages }) => {
      if (messages.at(-1).role !== 'tool') return of(toolCall('sleep', { seconds: 1 }), finish());
      say('asked');
      return role === 'hangs' ? NEVER : of(text('I am back.'), finish());
    },
  };
  const agent = createAgent({ name: 'helper', model, use: [sleepLayer(store.calls, { holdMs: 0 })] });
  const users = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
  if (role === 'asks') {
    const ada = await users.open('ada');
    say((await ada.call('Come back.', { callId: 'c1' })).reason);
    setInterval(() => undefined, 1000);
  } else {
    wake$(store.calls, users, { pollMs: 200 }).subscribe((it) => say(it.type));
  }
`;

const start = (directory: string, role: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, directory, role], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const said = async (wanted: string): Promise<void> => {
    while (!lines.includes(wanted)) await once(reader, 'line');
  };
  return { child, lines, said };
};

const kill = async (child: ChildProcess): Promise<void> => {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
};

it('S6: a sleep continues once, after kills of the process that was asked and of the one that woke it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sleep-'));
  const asked = start(directory, 'asks');
  await asked.said('suspended');
  await kill(asked.child);
  const hanging = start(directory, 'hangs');
  await hanging.said('asked');
  await kill(hanging.child);
  const [one, two] = [start(directory, 'wakes'), start(directory, 'wakes')];
  await Promise.race([one.said('woken'), two.said('woken')]);
  const late = start(directory, 'wakes');
  await Promise.all([kill(one.child), kill(two.child), kill(late.child)]);
  const lines = [...one.lines, ...two.lines, ...late.lines].filter((it) => it !== 'failed');
  expect(lines.toSorted()).toEqual(['asked', 'woken']);
  await rm(directory, { recursive: true });
});
