import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { calls$, journal, replay$ } from 'millrace/journal';
import { keepSessions, sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import type { Store } from '../store.js';
import { openFiles } from './open-files.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'misplaced-'));
});
afterAll(() => rm(root, { recursive: true }));

const all = <T>(source$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(source$.pipe(toArray()));

const agent = (user: string) =>
  createAgent({ model: scriptedModel([text(`One of ${user}`)], [text(`Two of ${user}`)]) });

/** A store in which two users have a call, a session and a conversation each. */
const filled = async (): Promise<{ readonly directory: string; readonly store: Store }> => {
  const directory = await mkdtemp(join(root, 'store-'));
  const store = openFiles(directory);
  for (const user of ['ann', 'bob']) {
    await agent(user).call('?', { callId: user, use: [journal(store.calls)] });
    const session = await keepSessions(agent(user), store.sessions).open(user);
    for (const question of ['1', '2']) await session.call(question);
    await session.close();
    await sessions(agent(user), { memory: store.memory }).open(user).call('?');
  }
  await all(store.close$());
  // Has read nothing yet.
  return { directory, store: openFiles(directory) };
};

/** What of a user can be read, for each kind of file. */
const read: Readonly<Record<string, (store: Store, user: string) => Promise<unknown>>> = {
  calls: ({ calls }, user) => all(replay$(calls, user, { speed: Infinity })),
  sessions: (store, user) => all(store.sessions.load$(user)),
  conversations: (store, user) => all(store.memory(user).load$()),
};

/** What is listed of all users. */
const listed: Readonly<Record<string, (store: Store) => Promise<readonly string[]>>> = {
  calls: async ({ calls }) => (await all(calls$(calls))).map(({ callId }) => callId),
  sessions: async (store) => (await all(store.sessions.find$({}))).flat().map(({ id }) => id),
};

const filesOf = async (
  directory: string,
  [folder, name]: Place,
  user: string,
): Promise<readonly string[]> => {
  const path = join(directory, folder, `i-${user}`);
  const found = (await readdir(path)).filter((it) => it.endsWith(name)).map((it) => join(path, it));
  expect(found).not.toEqual([]);
  return found;
};

type Place = readonly [folder: string, name: string];

const places: readonly Place[] = [
  ['calls', '.jsonl'],
  ['sessions', '.json'],
  ['sessions', '.entries'],
  ['conversations', '.jsonl'],
];

/** What can be in the place of a file. */
const others: Readonly<Record<string, (path: string) => unknown>> = {
  'a directory': (path) => mkdir(path),
  'a pipe': (path) => execFileSync('mkfifo', [path]),
  'a link to itself': (path) => symlink(path, path),
};

describe('S6: in the place of a file', () => {
  for (const [what, put] of Object.entries(others)) {
    it.each(places)(`${what} costs only what it belongs to: %s, %s`, async (folder, name) => {
      const { directory, store } = await filled();
      const files = await filesOf(directory, [folder, name], 'bob');
      for (const path of files) {
        await rm(path);
        await put(path);
      }
      // As often as it takes to occupy all threads that read files.
      const reading = Array.from({ length: 5 }, () => read[folder]?.(store, 'bob'));
      for (const failed of await Promise.allSettled(reading)) {
        expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'invalidState' } });
        const { message } = (failed as PromiseRejectedResult).reason as Error;
        expect(files.some((path) => message.startsWith(`${path} is not a file`))).toBe(true);
      }
      for (const [kind, readKind] of Object.entries(read)) {
        expect(await readKind(store, 'ann')).not.toEqual([]);
        if (kind !== folder) expect(await readKind(store, 'bob')).not.toEqual([]);
        expect((await listed[kind]?.(store)) ?? ['ann']).toContain('ann');
      }
    });
  }
});

describe('S6: the file of another user', () => {
  it.each(places.filter(([folder]) => folder !== 'conversations'))(
    'is never shown: %s, %s',
    async (folder, name) => {
      const { directory, store } = await filled();
      const foreign = await filesOf(directory, [folder, name], 'ann');
      const own = await filesOf(directory, [folder, name], 'bob');
      for (const [at, path] of own.entries()) await copyFile(foreign[at] ?? '', path);
      const failed = expect(read[folder]?.(store, 'bob')).rejects;
      await failed.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(join(directory, folder, 'i-bob')),
      });
      const shown = (await listed[folder]?.(store)) ?? [];
      expect(shown.filter((id) => id === 'ann')).toEqual(['ann']);
      expect(await read[folder]?.(store, 'ann')).not.toEqual([]);
    },
  );
});
