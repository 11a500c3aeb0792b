import { cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { SessionQuery, SessionState, SessionStore } from 'millrace/sessions';
import { lastValueFrom } from 'rxjs';
import { partsOf } from './file-work.js';
import { fileSessions, sessionsIn } from './file-sessions.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'by-time-'));
});
afterAll(() => rm(root, { recursive: true }));

const stateOf = (title: string) => ({ title, messages: [] }) as unknown as SessionState;

const save = async (sessions: SessionStore, id: string, title = id): Promise<number> => {
  const version = (await lastValueFrom(sessions.load$(id)))?.version;
  return lastValueFrom(sessions.save$(id, stateOf(title), version));
};

const find = async (sessions: SessionStore, query?: SessionQuery): Promise<readonly string[]> =>
  (await lastValueFrom(sessions.find$(query))).map(({ id, title }) => `${id} ${title}`);

const entriesOf = (directory: string): Promise<readonly string[]> =>
  readdir(join(directory, '.by-time')).then((names) => names.sort());

/** A store with sessions a, b and c, saved at 1, 2 and 3 seconds. */
const create = async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const clock = { now: 0 };
  const sessions = sessionsIn(partsOf(directory)(''), () => clock.now);
  for (const id of ['a', 'b', 'c']) {
    clock.now += 1_000;
    await save(sessions, id);
  }
  return { directory, clock, sessions };
};

const timed = (seconds: number, id: string): string =>
  `${String(seconds * 1_000_000).padStart(16, '0')}.i-${id}`;

describe('the sessions of a directory, by time', () => {
  it('S4: are found if the index is lost, which fills again', async () => {
    const { directory, sessions } = await create();
    const entries = await entriesOf(directory);
    await rm(join(directory, '.by-time'), { recursive: true });
    for (const _ of ['built', 'kept']) {
      expect(await find(sessions)).toEqual(['c c', 'b b', 'a a']);
      expect(await entriesOf(directory)).toEqual(entries);
    }
    const [, second] = await lastValueFrom(sessions.find$());
    expect(await find(sessions, second && { before: second })).toEqual(['a a']);
  });

  it('S4: are those of their current states, after any crash that the index shows', async () => {
    const { directory, clock, sessions } = await create();
    const index = join(directory, '.by-time');
    const left = [
      timed(0.5, 'b'),
      timed(2.5, 'a'),
      timed(9, 'b'),
      timed(8, 'gone'),
      'x.y',
      '1.i-a',
    ];
    for (const name of left) await writeFile(join(index, name), '');
    clock.now = Date.now();
    expect(await find(sessions)).toEqual(['c c', 'b b', 'a a']);
    // One that is later may belong to a save that is being made.
    expect(await entriesOf(directory)).toEqual(
      [
        timed(1, 'a'),
        timed(2, 'b'),
        timed(3, 'c'),
        timed(9, 'b'),
        timed(2.5, 'a'),
        'x.y',
        '1.i-a',
      ].sort(),
    );
    for (const id of ['a', 'b']) await save(sessions, id, 'new');
    expect(await find(sessions)).toEqual(['b new', 'a new', 'c c']);
    expect(await entriesOf(directory)).toHaveLength(5);
  });

  it('S4: are found if the index is older than the sessions, as in a copy of a store in use', async () => {
    const { directory, clock, sessions } = await create();
    const copy = join(root, 'copy');
    await cp(join(directory, '.by-time'), join(copy, '.by-time'), { recursive: true });
    clock.now = 5_000;
    await save(sessions, 'a', 'later');
    await save(sessions, 'd');
    for (const id of ['a', 'b', 'c', 'd']) {
      await cp(join(directory, `i-${id}`), join(copy, `i-${id}`), { recursive: true });
    }
    const copied = fileSessions(copy);
    expect(await find(copied)).toEqual(['d d', 'a later', 'c c', 'b b']);
    expect(await entriesOf(copy)).toEqual(await entriesOf(directory));
    expect(await find(copied, { limit: 1 })).toEqual(['d d']);
  });

  it('S4: leave nothing in the index when a save loses or fails, or the session is removed', async () => {
    const { directory, sessions } = await create();
    const before = await entriesOf(directory);
    const saves = Array.from({ length: 5 }, () =>
      lastValueFrom(sessions.save$('d', stateOf('d'), undefined)),
    );
    expect(
      (await Promise.allSettled(saves)).filter(({ status }) => status === 'fulfilled'),
    ).toHaveLength(1);
    expect(await entriesOf(directory)).toHaveLength(4);
    await lastValueFrom(sessions.remove$('d'));
    expect(await entriesOf(directory)).toEqual(before);
    await writeFile(join(directory, 'i-e'), 'a file in the place of a directory');
    await expect(save(sessions, 'e')).rejects.toMatchObject({ code: 'store' });
    expect(await entriesOf(directory)).toEqual(before);
  });

  it('S4: of the newest, no other state is read', async () => {
    const { directory, sessions } = await create();
    for (const id of ['a', 'b']) {
      const path = join(directory, `i-${id}`);
      await rm(path, { recursive: true });
      // An error, if it is read as a directory.
      await writeFile(path, '');
    }
    expect(await find(sessions, { limit: 1 })).toEqual(['c c']);
    expect(await find(sessions, { limit: 1, prefix: 'c', search: 'C' })).toEqual(['c c']);
    await expect(find(sessions)).rejects.toMatchObject({ code: 'store' });
  });

  it('S4: have the order of their saves, even if the clock is set back', async () => {
    const { clock, sessions } = await create();
    clock.now = 10;
    await save(sessions, 'c', 'again');
    const [first] = await lastValueFrom(sessions.find$());
    expect(first).toEqual({ id: 'c', title: 'again', savedAt: 3_000.001 });
    clock.now = 4_000;
    for (const id of ['b', 'a', 'c']) await save(sessions, id, 'same');
    expect(await find(sessions)).toEqual(['c same', 'a same', 'b same']);
  });

  it('S4: are found once each, page by page, if they were saved at the same time', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const ids = ['b', 'a', 'd', 'x'.repeat(300), 'c'];
    for (const id of ids)
      await save(
        sessionsIn(partsOf(directory)(''), () => 1_000),
        id,
        '',
      );
    const sessions = fileSessions(directory);
    const all = await lastValueFrom(sessions.find$());
    expect(all.map(({ savedAt }) => savedAt)).toEqual(ids.map(() => 1_000));
    for (const [at, before] of all.entries()) {
      const rest = await lastValueFrom(sessions.find$({ before, limit: 2 }));
      expect(rest).toEqual(all.slice(at + 1, at + 3));
    }
  });

  it('S4: have titles of any length', async () => {
    const { sessions } = await create();
    const title = 'ü'.repeat(5_000);
    await save(sessions, 'a', title);
    expect(await find(sessions, { limit: 1 })).toEqual([`a ${title}`]);
  });
});
