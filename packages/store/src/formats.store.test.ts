import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createAgent } from 'millrace';
import { createCallStore, inProcessCalls, journal, replay$ } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { cassette, scriptedModel } from 'millrace/testing';
import { concatMap, lastValueFrom, type Observable, take, toArray } from 'rxjs';
import { closeStore } from './close-store.test-support.js';
import { documentIndex } from './documents/index.js';
import { openFiles } from './files/open-files.js';
import { readLine, writeLine } from './files/line.js';
import { openSqlite } from './sqlite/open-sqlite.js';
import { loadDriver } from './sqlite/sqlite-driver.js';
import type { DatabaseStore, Store } from './store.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

const corpus = join(import.meta.dirname, '../corpus/files');
const recorded = join(import.meta.dirname, '../../millrace/corpus/format-1');

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'formats-'));
});
afterAll(() => rm(root, { recursive: true }));

const last = (source$: Observable<unknown>): Promise<unknown> =>
  lastValueFrom(source$, { defaultValue: undefined });

const agent = () => createAgent({ name: 'sample', model: scriptedModel() });

interface Recorded {
  readonly calls: Readonly<Record<string, readonly { readonly value: { version?: unknown } }[]>>;
}

/** The calls of a sample of the corpus. The first record of one of them has another version. */
const callsWith = async (sample: string, id: string, version: unknown) => {
  const text = readFileSync(join(recorded, `journals/${sample}.json`), 'utf8');
  const { calls } = JSON.parse(text) as Recorded;
  const driver = inProcessCalls();
  for (const [callId, records] of Object.entries(calls)) {
    const written = records.map(({ value, ...record }, index) => {
      const changed = callId === id && index === 0 ? { ...value, version } : value;
      return { ...record, text: JSON.stringify(changed) };
    });
    await last(
      driver.claim$(callId).pipe(
        take(1),
        concatMap(({ append$ }) => append$(written as never)),
      ),
    );
  }
  return createCallStore(driver);
};

/** The files of the corpus. The first line of one of them has another version. */
const filesWith = async (path: string, version: unknown): Promise<Store> => {
  const directory = await mkdtemp(join(root, 'files-'));
  await cp(corpus, directory, { recursive: true });
  const folder = join(directory, path);
  const file = join(folder, readdirSync(folder).find((it) => /\.jsonl?$/.test(it)) ?? '');
  const [head = '', ...records] = readFileSync(file, 'utf8').split('\n');
  const changed = { ...readLine('head', Buffer.from(head)), format: version };
  writeFileSync(file, writeLine('head', changed) + records.join('\n'));
  return openFiles(directory);
};

describe('S4: a stored thing of another format version is refused', () => {
  const stored: readonly (readonly [string, (version: unknown) => Promise<unknown>])[] = [
    [
      'the state of a session',
      (version) => {
        const state = readFileSync(join(recorded, 'states/tools.json'), 'utf8');
        const changed = { ...(JSON.parse(state) as object), version };
        return sessions(agent()).open('s').loadState(changed);
      },
    ],
    [
      'a call that is resumed',
      async (version) => journal(await callsWith('finished', 'c', version)).resume(agent(), 'c'),
    ],
    [
      'a call that is replayed',
      async (version) => last(replay$(await callsWith('finished', 'c', version), 'c')),
    ],
    [
      'the log of a conversation',
      async (version) => {
        const store = await callsWith('kept-long', '~conversation/s', version);
        const records = await lastValueFrom(store.driver.read$('b').pipe(toArray()));
        return records.flat().map(({ text }) => text);
      },
    ],
    [
      'a cassette',
      async (version) => {
        const file = join(root, 'cassette.json');
        writeFileSync(file, JSON.stringify({ version, recordings: [] }));
        return createAgent({ model: cassette(file, scriptedModel()) }).call('Hi.');
      },
    ],
    [
      'the file of a call',
      async (it) => last(replay$((await filesWith('calls/i-a', it)).calls, 'a')),
    ],
    [
      'the file of a conversation',
      async (version) =>
        last((await filesWith('conversations/i-chat', version)).memory('chat').load$()),
    ],
    [
      'the file of a session',
      async (version) =>
        last((await filesWith('sessions/i-kept_002f_00fc', version)).sessions.load$('kept/ü')),
    ],
  ];

  it.each(stored)('%s', async (_name, read) => {
    for (const [version, found] of [
      [0, 'format version 0'],
      [2, 'format version 2'],
      ['1', 'an invalid format version'],
    ]) {
      await expect(read(version)).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:invalidState|config)$/),
        message: expect.stringContaining(
          `has ${found}, but this release of Millrace reads only format version 1`,
        ),
      });
    }
    // What it has is read.
    await expect(read(1).then(() => 'read', String)).resolves.not.toContain('format version');
  });

  it('the tables of a SQLite database', async () => {
    const path = join(root, 'store.db');
    const uses = [
      (store: DatabaseStore) => documentIndex(store).sources$(),
      ({ calls }: DatabaseStore) => calls.driver.list$(),
      ({ memory }: DatabaseStore) => memory('s').load$(),
      (store: DatabaseStore) => store.sessions.load$('s'),
      ({ longTermMemory }: DatabaseStore) => longTermMemory.recall$({ userId: 'u' }, { text: 'x' }),
    ] as const;
    const isRead = async (): Promise<void> => {
      const store = openSqlite(path);
      for (const use of uses) await last(use(store));
      await closeStore(store);
    };
    const driver = await loadDriver();
    const setVersions = (other: string): void => {
      const database = driver?.open(path);
      database?.exec(`update formats set version = iif(part = '${other}', 2, 1)`);
      database?.close();
    };
    await isRead();
    for (const part of ['calls', 'conversations', 'sessions', 'memories', 'documents']) {
      setVersions(part);
      const store = openSqlite(path);
      for (const use of uses) {
        await expect(last(use(store))).rejects.toMatchObject({
          code: 'invalidState',
          message: expect.stringContaining(
            `(${part}) has format version 2, but this release of Millrace reads only format version 1`,
          ),
        });
      }
      await closeStore(store);
    }
    setVersions('');
    await isRead();
  });
});
