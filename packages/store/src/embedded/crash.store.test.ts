import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { killWhileBranching } from '../memory/branching-process.test-support.js';
import type { DatabaseStore } from '../store.js';
import {
  killedAfter,
  namesOfBatches,
  startProcess,
  writing,
} from '../writing-process.test-support.js';
import { openEmbedded } from './open-embedded.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crash-'));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => closeStore(store)));
  await rm(directory, { recursive: true });
});

const opening = `
  import { openEmbedded } from '@millrace/store/embedded';
  const store = openEmbedded(process.argv[1], { leaseMs: 2000, onProgress: () => {} });
  const calls = store.calls.driver;
`;

const open = (): DatabaseStore => {
  const store = openEmbedded(directory, { leaseMs: 2_000, onProgress: () => undefined });
  stores.push(store);
  return store;
};

const readAll = async (store: DatabaseStore) =>
  (await lastValueFrom(store.calls.driver.read$('c').pipe(toArray()))).flat();

it('S6: an embedded database whose process is killed has lost nothing that was told is written, and is free', async () => {
  for (const batches of [4, 15]) {
    const last = await killedAfter(opening, [directory], batches);
    const store = open();
    const records = await readAll(store);
    expect(records.length % 3).toBe(0);
    expect(records.length).toBeGreaterThanOrEqual(3 * (last + 1));
    expect(records.map(({ position }) => position)).toEqual(records.map((_, at) => at + 1));
    expect(records.map(({ name }) => name)).toEqual(namesOfBatches(records.length));
    // Its lease of the call is gone with it.
    await firstValueFrom(store.calls.driver.claim$('c'));
    await lastValueFrom(store.calls.driver.remove$('c'));
    await closeStore(store);
  }
});

it('G2: an embedded database whose process is killed while it appends to branches and removes some has lost nothing', async () => {
  await killWhileBranching(
    () => open().memory('s'),
    `${opening}
    const memory = store.memory('s');`,
    [directory],
    [60],
  );
  await Promise.all(stores.map((store) => closeStore(store)));
});

/** Says which code it ends with, or how many calls there are, when its database is open. */
const starting = `
  ${opening}
  import { toArray } from 'rxjs';
  process.stdout.write('begins\\n');
  const done = (text) => process.stdout.write(text + '\\n');
  calls.list$().pipe(toArray()).subscribe({ next: () => done('open'), error: ({ code }) => done(code) });
`;

it('S7: a process that blocks while it starts the database, or is suspended for longer than its lease, keeps it: another one gets `conflict`', async () => {
  const lock = join(directory, 'database.lock');
  const one = startProcess(starting, [directory]);
  await one.said('begins');
  while ((await readdir(lock).catch(() => [])).length === 0);
  one.child.kill('SIGSTOP');
  const [holder] = await readdir(lock);
  expect(holder).toMatch(/\.starting$/);
  const other = startProcess(starting, [directory]);
  expect((await other.ended).at(-1)).toBe('conflict');
  expect(await readdir(lock)).toEqual([holder]);
  one.child.kill('SIGCONT');
  await one.said('open');
  one.child.kill('SIGSTOP');
  await expect(readAll(open())).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`another process (${one.child.pid})`),
  });
  one.child.kill('SIGKILL');
  await one.ended;
  const store = open();
  expect(await readAll(store)).toEqual([]);
  await closeStore(store);
});

it('S7: a process that was suspended while another machine took its database over writes nothing when it goes on', async () => {
  const { child, ended } = startProcess(writing(opening), [directory], (line, suspended) => {
    if (line === '3') suspended.kill('SIGSTOP');
  });
  const lock = join(directory, 'database.lock');
  const stat = (): Promise<string> => readFile(`/proc/${child.pid}/stat`, 'utf8');
  while (!(await stat()).includes(') T '));
  const [holder = ''] = await readdir(lock);
  const other = holder.replace(/^\w+/, '0123456789abcdef');
  await rename(join(lock, holder), join(lock, other));
  child.kill('SIGCONT');
  expect((await ended).at(-1)).toBe('conflict');
  expect(await readdir(lock)).toEqual([other]);
  await rm(lock, { recursive: true });
  const records = await readAll(open());
  expect(records.map(({ name }) => name)).toEqual(namesOfBatches(records.length));
});
