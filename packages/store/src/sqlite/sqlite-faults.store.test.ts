import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, tool } from 'millrace';
import { type Claim, journal } from 'millrace/journal';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { changeFile } from './change-file.test-support.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
let path: string;
const stores: ReturnType<typeof openSqlite>[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sqlite-faults-'));
  path = join(directory, 'store', 'calls.db');
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => closeStore(store)));
  await rm(directory, { recursive: true });
});

const open = () => {
  const store = openSqlite(path, { leaseMs: 2_000 });
  stores.push(store);
  return store;
};
const step = { kind: 'step', name: 'a', seq: 0, text: JSON.stringify('a secret') } as const;
const list = async (store: ReturnType<typeof openSqlite>) =>
  (await lastValueFrom(store.calls.driver.list$().pipe(toArray()))).flat();
/** Claims a call for the rest of the test. */
const claimed = async (store: ReturnType<typeof openSqlite>, callId: string): Promise<Claim> => {
  const claims = new ReplaySubject<Claim>(1);
  store.calls.driver.claim$(callId).subscribe({
    next: (claim) => claims.next(claim),
    error: (error) => claims.error(error),
  });
  return firstValueFrom(claims);
};
const append = ({ append$ }: Claim): Promise<unknown> =>
  lastValueFrom(append$([step]), { defaultValue: undefined });
const withCalls = async (count: number): Promise<void> => {
  const store = open();
  for (let at = 0; at < count; at += 1) await append(await claimed(store, `c${at}`));
  await closeStore(store);
};

describe('S4: a file that cannot be read', () => {
  it('has a later format', async () => {
    await withCalls(1);
    await changeFile(path, (file) => file.exec('update formats set version = 2'));
    await expect(list(open())).rejects.toMatchObject({
      code: 'invalidState',
      message: `The database ${path} (calls) has format version 2, but this release of Millrace reads only format version 1. Open it with the release that wrote it, or delete it.`,
    });
    await changeFile(path, (file) => file.exec('update formats set version = 1'));
    expect(await list(open())).toHaveLength(1);
  });

  it('is no database', async () => {
    await mkdir(join(directory, 'store'));
    writeFileSync(path, 'a secret '.repeat(1_000));
    await expect(list(open())).rejects.toMatchObject({
      code: 'invalidState',
      message: `The database ${path} failed: the file is not a SQLite database. Choose another path.`,
    });
    expect(readFileSync(path, 'utf8')).toBe('a secret '.repeat(1_000));
  });

  it('is a database of another program, which stays as it is', async () => {
    await mkdir(join(directory, 'store'));
    await changeFile(path, (file) => file.exec('create table secrets (a text)'));
    const before = readFileSync(path);
    await expect(list(open())).rejects.toMatchObject({
      code: 'invalidState',
      message: `The file ${path} is a database of another program. Choose another path.`,
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('is damaged', async () => {
    await withCalls(300);
    const bytes = readFileSync(path);
    writeFileSync(
      path,
      Buffer.concat([bytes.subarray(0, 4_096), Buffer.alloc(bytes.length - 4_096, 7)]),
    );
    await expect(list(open())).rejects.toMatchObject({
      code: 'invalidState',
      message: `The database ${path} failed: the file is damaged. Restore it from a backup, or move it away to begin with an empty one.`,
    });
    truncateSync(path, 4_096);
    await expect(list(open())).rejects.toMatchObject({ code: 'invalidState' });
  });

  it('has lost a table', async () => {
    await withCalls(1);
    await changeFile(path, (file) => file.exec('drop table records'));
    await expect(list(open())).rejects.toMatchObject({
      code: 'invalidState',
      message: `The database ${path} failed: its tables are not those of this release. Restore it from a backup, or move it away to begin with an empty one.`,
    });
  });

  it('has a name that is too long, or with a NUL character', async () => {
    path = join(directory, 'store', 'x'.repeat(300));
    await expect(list(open())).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('is too long. Choose a shorter one'),
    });
    expect(() => openSqlite('a\0b.db')).toThrow('not one with a NUL character');
  });

  it('is a link to a file that does not exist: it is made there', async () => {
    await mkdir(join(directory, 'store'));
    await symlink(join(directory, 'elsewhere.db'), path);
    await withCalls(1);
    expect(existsSync(join(directory, 'elsewhere.db'))).toBe(true);
    expect(await list(open())).toHaveLength(1);
  });

  it('is a directory, or is below a file', async () => {
    await mkdir(path, { recursive: true });
    await expect(list(open())).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining(directory),
    });
    await rm(path, { recursive: true });
    writeFileSync(path, '');
    path = join(path, 'calls.db');
    await expect(list(open())).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('a file is in the place of a directory'),
    });
  });
});

describe('S6: a file that is moved or deleted while it is in use', () => {
  it('is reported, and so is its directory; put back, it continues', async () => {
    const store = open();
    await list(store);
    const gone = {
      code: 'store',
      message: `The store in ${join(directory, 'store')} failed: the directory was moved or deleted while it was in use. Restore it, or open the store at its new path.`,
    };
    const [here, elsewhere] = [join(directory, 'store'), join(directory, 'elsewhere')];
    const model = scriptedModel([toolCall('move')], [text('Done.')]);
    const run = (): Promise<void> => rename(here, elsewhere);
    const tools = [tool({ name: 'move', description: 'Moves the directory.', run })];
    const agent = createAgent({ model, tools, use: [journal(store.calls)] });
    await expect(agent.call('?')).rejects.toMatchObject(gone);
    // Nor does anything new begin.
    await expect(agent.call('?')).rejects.toMatchObject(gone);
    await expect(list(store)).rejects.toMatchObject(gone);
    expect(existsSync(here)).toBe(false);
    await rename(elsewhere, here);
    expect(await list(store)).toHaveLength(1);
  });

  it('is left alone when another one is in its place: nothing of it is written there', async () => {
    const store = open();
    const lost = await claimed(store, 'c');
    await append(lost);
    await rename(path, `${path}-old`);
    const other = open();
    await append(await claimed(other, 'd'));
    await expect(append(lost)).rejects.toMatchObject({ code: 'conflict' });
    await closeStore(store);
    await append(await claimed(other, 'e'));
    expect((await list(other)).map(({ callId }) => callId).sort()).toEqual(['d', 'e']);
  });
});

describe('S6: another process that writes all the time', () => {
  it('is waited for, by the scheduler', async () => {
    const store = open();
    const claim = await claimed(store, 'c');
    await changeFile(path, async (file) => {
      file.exec('begin immediate');
      const writing = append(claim);
      const first = await Promise.race([
        writing,
        new Promise((resolve) => setTimeout(resolve, 300, 'waits')),
      ]);
      expect(first).toBe('waits');
      // Reads wait for nobody.
      expect(await list(store)).toHaveLength(1);
      file.exec('commit');
      await writing;
    });
  });
});

it('S6: a value that is not plain data fails its own operation only', async () => {
  const store = open();
  const claim = await claimed(store, 'c');
  const query: object = { sessionId: 's', debug: () => 1 };
  const [appended, listed] = await Promise.allSettled([
    append(claim),
    lastValueFrom(store.calls.driver.list$(query).pipe(toArray())),
  ]);
  expect(appended.status).toBe('fulfilled');
  expect(listed).toMatchObject({
    status: 'rejected',
    reason: { code: 'config', message: expect.stringContaining('not plain data') as unknown },
  });
});

it('X1: openSqlite() without a path says what to do', () => {
  const unset = process.env['MILLRACE_NO_SUCH_PATH'] as string;
  expect(() => openSqlite(unset)).toThrow(
    "openSqlite() needs the path of a file, such as './millrace.db', not undefined.",
  );
});
