import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { SessionStore, SessionState } from 'millrace/sessions';
import { sessionStoreContract } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';
import { countInProcesses } from '../sessions/count-in-processes.test-support.js';
import { storedName } from '../stored-name.js';
import { fileSessions } from './file-sessions.js';
import { writeLine } from './line.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let made = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sessions-'));
});
afterAll(() => rm(root, { recursive: true }));

const newDirectory = (): string => join(root, `store-${(made += 1)}`, 'sessions');

const stateOf = (name: string) => ({ name }) as unknown as SessionState;

const save = (sessions: SessionStore, id: string, name: string, expected?: number) =>
  lastValueFrom(sessions.save$(id, stateOf(name), expected));

const load = (sessions: SessionStore, id = 's') => lastValueFrom(sessions.load$(id));

const idsIn = async (sessions: SessionStore): Promise<readonly string[]> =>
  (await lastValueFrom(sessions.find$())).map(({ id }) => id);

/** A store with two sessions, and the files of one of them. */
const create = async (id = 's') => {
  const directory = newDirectory();
  const sessions = fileSessions(directory);
  const version = await save(sessions, id, 'a');
  await save(sessions, 'other', 'b');
  const own = join(directory, storedName(id));
  const [state = ''] = (await readdir(own)).filter((name) => name.endsWith('.json'));
  return { directory, sessions, version, own, state: join(own, state) };
};

describe('fileSessions', () => {
  for (const { name, run } of sessionStoreContract(() => fileSessions(newDirectory()))) {
    it(`S4: ${name}`, run);
  }

  it('S4: lets one process at a time follow a version', async () => {
    const directory = newDirectory();
    await countInProcesses(
      fileSessions(directory),
      `import { openFiles } from '@millrace/store';
      const { sessions } = openFiles(process.argv[1]);`,
      [join(directory, '..')],
    );
    expect(await readdir(directory)).toEqual([
      '.aside',
      '.by-time',
      '.millrace-store',
      storedName('s'),
    ]);
    expect(await readdir(join(directory, '.aside'))).toEqual([]);
  }, 180_000);

  it('S4: gives a version never again, and keeps one state', async () => {
    const { sessions, own, version } = await create();
    expect(await save(sessions, 's', 'b', version)).toBe(version + 1);
    expect(await readdir(own)).toHaveLength(2);
    await lastValueFrom(sessions.remove$('s'));
    const anew = await save(sessions, 's', 'c');
    expect([version, version + 1]).not.toContain(anew);
    expect(Number.isSafeInteger(anew)).toBe(true);
  });

  it('S4: saves what it is when it is saved', async () => {
    const sessions = fileSessions(newDirectory());
    const state = { name: 'a' };
    const saved = lastValueFrom(sessions.save$('s', state as unknown as SessionState, undefined));
    state.name = 'b';
    const version = await saved;
    expect(await load(sessions)).toEqual({ version, state: { name: 'a' } });
  });

  it('S4: is not misled by what an interrupted save has left', async () => {
    const { sessions, own, state, version } = await create();
    const id = 'cfe0c8d1-6b67-7bf7-9e3f-bd0b1b2a1d5c';
    await writeFile(join(own, `${version + 1}-${id}.json`), 'torn');
    expect(await load(sessions)).toEqual({ version, state: { name: 'a' } });
    expect(await load(sessions, 'new')).toBeUndefined();
    expect((await idsIn(sessions)).toSorted()).toEqual(['other', 's']);
    expect(await save(sessions, 's', 'b', version)).toBe(version + 1);
    expect(await readdir(own)).toHaveLength(2);
    expect(await readdir(own)).not.toContain(state);
  });

  const long = 'x'.repeat(5_000);
  it.each<[string, (state: string, own: string) => Promise<unknown>]>([
    ['torn', async (state) => truncate(state, (await stat(state)).size - 10)],
    ['empty', (state) => truncate(state)],
    ['longer', (state) => appendFile(state, 'x\n')],
    ['gone', (state) => rm(state)],
    [
      'edited',
      async (state) => writeFile(state, (await readFile(state, 'utf8')).replace('"a"', '"x"')),
    ],
    ['no text', (state) => writeFile(state, Buffer.from([0xff, 0xfe, 0, 0x0a]))],
  ])('S4: names the file that is %s, and leaves the others alone', async (_name, damage) => {
    for (const id of ['s', long]) {
      const { sessions, own, state, version } = await create(id);
      await damage(state, own);
      await expect(load(sessions, id)).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(state),
      });
      expect(await idsIn(sessions)).toContain('other');
      expect((await load(sessions, 'other'))?.state).toEqual({ name: 'b' });
      // Whoever knows what it was goes on with it.
      await save(sessions, id, 'c', version);
      expect((await load(sessions, id))?.state).toEqual({ name: 'c' });
    }
  });

  it('S4: refuses what is of another session, and a directory that says nothing', async () => {
    const { directory, sessions, own } = await create();
    await rename(own, join(directory, storedName('t')));
    await expect(load(sessions, 't')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("contains the session 's'"),
    });
    await mkdir(own);
    await writeFile(join(own, 'x'), '');
    for (const work of [() => load(sessions), () => save(sessions, 's', 'a')]) {
      await expect(work()).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(own),
      });
    }
  });

  it('S4: refuses another format version', async () => {
    const { sessions, state } = await create();
    await writeFile(state, writeLine('head', { format: 2 }));
    await expect(load(sessions)).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining(`${state} has format version 2, but this release`),
    });
  });

  it('S4: leaves the former state if a save fails', async () => {
    const { sessions, own, version } = await create();
    const circular: { self?: unknown } = {};
    circular.self = circular;
    const bad = circular as unknown as SessionState;
    await expect(lastValueFrom(sessions.save$('s', bad, version))).rejects.toThrow('circular');
    expect(await load(sessions)).toEqual({ version, state: { name: 'a' } });
    expect(await readdir(own)).toHaveLength(2);
  });

  it('X17: is for this user alone, and refuses what is no id', async () => {
    const { directory, sessions, own, state } = await create('../../x');
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await stat(own)).mode & 0o777).toBe(0o700);
    for (const name of await readdir(own)) {
      expect((await stat(join(own, name))).mode & 0o777).toBe(0o600);
    }
    expect(state.startsWith(directory)).toBe(true);
    for (const id of ['', 'x'.repeat(20_000)]) {
      await expect(load(sessions, id)).rejects.toMatchObject({ code: 'invalidRequest' });
    }
  });
});
