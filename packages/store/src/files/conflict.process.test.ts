import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { calls$, replay$ } from 'millrace/journal';
import type { SessionState } from 'millrace/sessions';
import { lastValueFrom, toArray } from 'rxjs';
import { startProcess } from '../writing-process.test-support.js';
import { openFiles } from './open-files.js';

jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'conflict-'));
});
afterAll(() => rm(root, { recursive: true }));

/** A process that makes so many calls of one session. After a conflict, it closes the session, opens it and resumes it. */
const calling = `
  import { createAgent, tool } from 'millrace';
  import { journal } from 'millrace/journal';
  import { keepSessions } from 'millrace/sessions';
  import { finish, text, toolCall } from 'millrace/testing';
  import { openFiles } from '@millrace/store';
  import { concatMap, timer } from 'rxjs';
  const [directory, name, count] = process.argv.slice(1);
  const store = openFiles(directory, { leaseMs: 2000 });
  const durable = journal(store.calls, { onUncertain: 'rerun' });
  const say = (text) => process.stdout.write(text + '\\n');
  const model = {
    name: 'sample',
    stream$: ({ messages }) => timer(5 + Math.random() * 20).pipe(
      concatMap(() => messages.at(-1).role === 'user' && Math.random() < 0.5
        ? [toolCall('look'), finish()] : [text('Done.'), finish()]),
    ),
  };
  const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
  const kept = keepSessions(createAgent({ model, tools: [look] }), store.sessions, { journal: durable });
  let session;
  const open = async () => {
    for (;;) {
      try {
        await session?.close();
        session = await kept.open('s');
        await session.resume();
        return;
      } catch (error) {
        if (error.code !== 'conflict') throw error;
      }
    }
  };
  await open();
  say('open');
  for (let at = 0; at < Number(count); at += 1) {
    const callId = name + at;
    try {
      await session.call('?', { callId });
      say(callId + ' replied');
    } catch (error) {
      if (error.code !== 'conflict' || !error.message.includes("'" + callId + "'")) throw error;
      say(callId + ' lost');
      await open();
    }
  }
  await open();
  say('done');
`;

it('S6: processes that answer one session, one of them killed, lose no call and have none twice', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const begin = (name: string) =>
    startProcess(calling, [directory, name, '12'], (line, child) => {
      // Its next call has begun, or is about to.
      if (line.startsWith('c2 ')) child.kill('SIGKILL');
    });
  const [one, two, killed] = [begin('a'), begin('b'), begin('c')];
  expect((await killed.ended).at(-1)).not.toBe('done');
  const others = await Promise.all([one.ended, two.ended]);
  expect(others.map((lines) => lines.at(-1))).toEqual(['done', 'done']);
  const last = await startProcess(calling, [directory, 'd', '1']).ended;
  expect(last.at(-1)).toBe('done');

  const store = openFiles(directory);
  const found = await lastValueFrom(calls$(store.calls).pipe(toArray()));
  expect([...new Set(found.map(({ status }) => status))]).toEqual(['ended']);
  const events = await Promise.all(
    found.map(({ callId }) => lastValueFrom(replay$(store.calls, callId).pipe(toArray()))),
  );
  const recorded = events
    .flat()
    .flatMap((event) => (event.type === 'messagesAppended' ? event.messages : []))
    .map(({ id }) => id);
  const stored = await lastValueFrom(store.sessions.load$('s'));
  const { messages, branches = [] } = stored?.state as SessionState;
  const ids = [...messages, ...branches.map(({ message }) => message)].map(({ id }) => id);
  expect(ids.toSorted()).toEqual([...new Set(recorded)].toSorted());
  const told = [...others.flat(), ...last].filter((line) => / (?:replied|lost)$/u.test(line));
  expect(told).toHaveLength(25);
  for (const line of told) expect(ids).toContain(`${line.split(' ')[0]}/input/0`);
  // They did meet.
  expect(told.filter((line) => line.endsWith('lost')).length).toBeGreaterThan(0);
});
