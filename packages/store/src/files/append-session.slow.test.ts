import {
  appendFile,
  cp,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { SessionChange, SessionState, SessionStore } from 'millrace/sessions';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { storedName } from '../stored-name.js';
import {
  killedBefore,
  loadPlayed,
  type PlayedProcess,
  playProcess,
} from './file-operations.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let fileSessions: (directory: string) => SessionStore;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'append-'));
  ({ fileSessions } = await loadPlayed(() => import('./file-sessions.js')));
});
afterAll(() => rm(root, { recursive: true }));

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const rest = {
  ...{ version: 1, groups: {}, approvals: [], usage, interrupted: false },
} as const satisfies SessionChange['rest'];
const stateOf = (...ids: readonly string[]): SessionState => ({
  ...rest,
  messages: ids.map((id) => ({ id, role: 'user', content: [{ type: 'text', text: id }] })),
});
const changeOf = (after: string | null, id: string, length = 0): SessionChange => {
  const content = [{ type: 'text', text: `${id}${'x'.repeat(length)}` }] as const;
  return { entries: [{ message: { id, role: 'user', content }, after }], head: id, rest };
};
const load = async (sessions: SessionStore, id = 's') => {
  const stored = await lastValueFrom(sessions.load$(id));
  const { messages } = (stored?.state ?? { messages: [] }) as SessionState;
  return { version: stored?.version, ids: messages.map((message) => message.id) };
};
const append = (
  sessions: SessionStore,
  change: SessionChange,
  version: number,
  id = 's',
): Promise<number> => {
  const appended$ = sessions.append$?.(id, change, version);
  if (appended$ === undefined) throw new Error('It cannot append.');
  return lastValueFrom(appended$);
};
const own = (directory: string): string => join(directory, storedName('s'));
const filesOf = async (directory: string, end: string): Promise<readonly string[]> =>
  (await readdir(own(directory))).filter((name) => name.endsWith(end));

/** A session with the messages a to d, of which two are in a file of messages. */
const create = async () => {
  const directory = join(await mkdtemp(join(root, 'store-')), 'sessions');
  const sessions = fileSessions(directory);
  let version = await lastValueFrom(sessions.save$('s', stateOf('a', 'b'), undefined));
  version = await append(sessions, changeOf('b', 'c'), version);
  version = await append(sessions, changeOf('c', 'd'), version);
  return { directory, sessions, version };
};

describe('append$, in files', () => {
  it('S4: writes what it appends, and not the conversation', async () => {
    const written: number[] = [];
    for (const writers of ['one', 'one for each']) {
      const directory = join(await mkdtemp(join(root, 'store-')), 'sessions');
      let sessions = fileSessions(directory);
      let version = await lastValueFrom(sessions.save$('s', stateOf('m'), undefined));
      const played: PlayedProcess = { operations: [] };
      let last = 'm';
      const marks: number[] = [];
      for (let at = 0; at < 400; at += 1) {
        if (writers !== 'one') sessions = fileSessions(directory);
        const change = changeOf(last, `m${at}`, 2_000);
        version = (await playProcess(played, () => append(sessions, change, version))) ?? 0;
        last = `m${at}`;
        if (at === 99) marks.push(played.written ?? 0);
      }
      marks.push(played.written ?? 0);
      const exponent = Math.log((marks[1] ?? 0) / (marks[0] ?? 1)) / Math.log(4);
      written.push(exponent);
      expect((await load(sessions)).ids).toHaveLength(401);
      expect((await filesOf(directory, '.entries')).length).toBeLessThan(12);
      expect(await filesOf(directory, '.current')).toHaveLength(1);
      expect(await filesOf(directory, '.json')).toHaveLength(2);
    }
    expect(written[0]).toBeLessThan(1.05);
    expect(written[1]).toBeLessThan(1.3);
  });

  it('S4: leaves the state before or after it, wherever the process is killed', async () => {
    const { directory, version } = await create();
    for (const isNew of [false, true]) {
      let wasKilled = true;
      let cut = 0;
      for (; wasKilled; cut += 1) {
        const copy = join(await mkdtemp(join(root, 'cut-')), 'sessions');
        await cp(directory, copy, { recursive: true });
        const sessions = fileSessions(copy);
        let before = { version, ids: ['a', 'b', 'c', 'd'] };
        if (!isNew) {
          const next = await append(sessions, changeOf('d', 'd2'), version);
          before = { version: next, ids: [...before.ids, 'd2'] };
        }
        const last = before.ids.at(-1) ?? null;
        const played = killedBefore(cut);
        const told = await playProcess(played, () =>
          append(sessions, changeOf(last, 'e'), before.version),
        );
        wasKilled = played.isDead === true;
        const other = fileSessions(copy);
        const now = await load(other);
        const after = { version: before.version + 1, ids: [...before.ids, 'e'] };
        expect([before, after]).toContainEqual(now);
        if (told !== undefined) expect(now).toEqual(after);
        expect((await lastValueFrom(other.find$())).map(({ id }) => id)).toEqual(['s']);
        const next = await append(other, changeOf(now.ids.at(-1) ?? null, 'f'), now.version ?? 0);
        expect(await load(fileSessions(copy))).toEqual({ version: next, ids: [...now.ids, 'f'] });
        const state = (await load(other)).ids;
        await lastValueFrom(other.save$('s', stateOf(...state), next));
        expect(await readdir(own(copy))).toHaveLength(2);
        expect(cut).toBeLessThan(100);
      }
      expect(cut).toBeGreaterThan(8);
    }
  });

  it('S4: lets one of several writers follow a version, and never touches what it has written', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            writer: fc.nat({ max: 2 }),
            kind: fc.constantFrom('whole', 'appended', 'rest'),
            at: fc.nat({ max: 3 }),
          }),
          {
            minLength: 4,
            maxLength: 14,
          },
        ),
        async (saves) => {
          const { directory, version } = await create();
          const writers = [0, 1, 2].map(() => fileSessions(directory));
          let current = { version, ids: ['a', 'b', 'c', 'd'] as readonly string[] };
          for (let at = 0; at < saves.length; at += 3) {
            const round = saves.slice(at, at + 3);
            const results = await Promise.allSettled(
              round.map(async ({ writer, kind }, index) => {
                const sessions = writers[writer];
                if (sessions === undefined) throw new Error('There is no such writer.');
                const id = `m${at}-${index}`;
                const last = current.ids.at(-1) ?? null;
                const ids = kind === 'rest' ? current.ids : [...current.ids, id];
                const appended = changeOf(last, id, index * 100);
                const change =
                  kind === 'rest' ? { ...appended, entries: [], head: last } : appended;
                const next =
                  kind === 'whole'
                    ? await lastValueFrom(sessions.save$('s', stateOf(...ids), current.version))
                    : await append(sessions, change, current.version);
                return { version: next, ids };
              }),
            );
            const won = results.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
            expect(won).toHaveLength(1);
            for (const it of results) {
              if (it.status === 'rejected') expect(it.reason).toMatchObject({ code: 'conflict' });
            }
            current = won[0] ?? current;
            for (const sessions of [...writers, fileSessions(directory)]) {
              expect(await load(sessions)).toEqual(current);
            }
          }
          const save$ = fileSessions(directory).save$('s', stateOf('z'), current.version);
          await lastValueFrom(save$);
          expect(await readdir(own(directory))).toHaveLength(2);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('S4: a writer that lost does not continue the file in which it has left messages', async () => {
    const { directory, sessions, version } = await create();
    const other = fileSessions(directory);
    const renamed: SessionChange = { entries: [], head: 'd', rest: { ...rest, title: 'Tea' } };
    let next = 0;
    const played: PlayedProcess = {
      operations: [],
      before: async (operation) => {
        if (next === 0 && /^rename .*\.current/.test(operation)) {
          next = -1;
          next = await append(other, renamed, version);
        }
        return true;
      },
    };
    const losing = playProcess(played, () => append(sessions, changeOf('d', 'lost'), version));
    await expect(losing).rejects.toMatchObject({ code: 'conflict' });
    const last = await append(sessions, changeOf('d', 'e'), next);
    const expected = { version: last, ids: ['a', 'b', 'c', 'd', 'e'] };
    for (const it of [sessions, fileSessions(directory)]) expect(await load(it)).toEqual(expected);
  });

  const damages: readonly (readonly [string, string, (path: string) => Promise<unknown>])[] = [
    [
      'a file of messages is cut off',
      '.entries',
      async (it) => truncate(it, (await stat(it)).size - 5),
    ],
    ['a file of messages is empty', '.entries', (it) => truncate(it)],
    ['a file of messages is gone', '.entries', (it) => rm(it)],
    [
      'a file of messages is edited',
      '.entries',
      async (it) => writeFile(it, (await readFile(it, 'utf8')).replace('"c"', '"x"')),
    ],
    ['the state is cut off', '.json', async (it) => truncate(it, (await stat(it)).size - 5)],
  ];
  it.each(damages)('S4: if %s, an error names it', async (_, end, damage) => {
    const { directory, version } = await create();
    const names = (await filesOf(directory, end)).filter(
      (name) => end !== '.json' || name.startsWith(`${version}-`),
    );
    const path = join(own(directory), names[0] ?? '');
    await damage(path);
    const sessions = fileSessions(directory);
    await expect(lastValueFrom(sessions.load$('s'))).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining(end === '.entries' ? '.entries' : path),
    });
    await lastValueFrom(sessions.save$('s', stateOf('z'), version));
    expect((await load(sessions)).ids).toEqual(['z']);
  });

  it('S4: does not read what a save has left that failed', async () => {
    const { directory, sessions, version } = await create();
    const [name = ''] = await filesOf(directory, '.entries');
    await appendFile(join(own(directory), name), 'torn');
    expect((await load(fileSessions(directory))).ids).toEqual(['a', 'b', 'c', 'd']);
    const next = await append(fileSessions(directory), changeOf('d', 'e'), version);
    expect((await load(sessions)).ids).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(next).toBe(version + 1);
  });

  it('S4: finds a session by what was appended to it', async () => {
    const { sessions, version } = await create();
    const change = { ...changeOf('d', 'needle'), rest: { ...rest, title: 'Tea' } };
    await append(sessions, change, version);
    for (const search of ['needle', 'tea']) {
      const found = await lastValueFrom(sessions.find$({ search }));
      expect(found).toMatchObject([{ id: 's', title: 'Tea' }]);
    }
    expect(await lastValueFrom(sessions.find$({ search: 'thread' }))).toEqual([]);
  });
});
