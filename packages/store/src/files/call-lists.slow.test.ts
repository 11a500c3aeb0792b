import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  calls$,
  type CallQuery,
  type CallStoreDriver,
  type Claim,
  createCallStore,
  type NewRecord,
  prune$,
} from 'millrace/journal';
import { firstValueFrom, lastValueFrom, type Observable, ReplaySubject, take, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { loadPlayed, type PlayedProcess, playProcess } from './file-operations.test-support.js';
import { writeLine } from './line.js';
import { writeBatch } from './read-batches.js';

let root: string;
let fileCalls: (directory: string) => CallStoreDriver;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'index-'));
  ({ fileCalls } = await loadPlayed(() => import('./file-calls.js')));
});
afterAll(() => rm(root, { recursive: true }));

const newDirectory = (): Promise<string> => mkdtemp(join(root, 'store-'));

const begins = (callId: string, sessionId?: string): NewRecord => {
  const record = { version: 1, keySeed: '/1', agent: 'a', input: [], options: {}, given: [] };
  const text = JSON.stringify({ ...record, sessionId });
  return { kind: 'step', name: `${callId}/call`, seq: 0, text };
};
const step: NewRecord = { kind: 'step', name: 'step', seq: 1, text: '1' };
const replyOf = (callId: string): NewRecord => {
  const text = JSON.stringify({ id: 'm', role: 'assistant', content: [], reason: 'answer' });
  return { kind: 'step', name: `${callId}/reply`, seq: 2, text, ends: true };
};

/** Writes calls with the same time each, and without an index. */
const writeUnindexed = async (directory: string, count: number, unfinished = 0): Promise<void> => {
  for (let at = 0; at < count; at += 1) {
    const callId = `c${at}`;
    const path = join(directory, storedName(callId));
    await mkdir(path, { recursive: true });
    const records = at < unfinished ? [begins(callId)] : [begins(callId, 's'), replyOf(callId)];
    const dated = records.map(({ kind, name, seq, text }, index) => ({
      ...{ kind, name, seq, text, position: index + 1, at: 1_000 * (at + 1) },
    }));
    const head = writeLine('head', { format: 1, callId, after: 0, ends: [], at: 1 });
    await writeFile(join(path, '000001.jsonl'), head + writeBatch(dated));
  }
};

const all = <T>(work$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(work$.pipe(toArray()));
const idsIn = async (driver: CallStoreDriver, query?: CallQuery): Promise<readonly string[]> =>
  (await all(driver.list$(query))).flat().map(({ callId }) => callId);
const hold = async (driver: CallStoreDriver, callId: string) => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$(callId).subscribe(claim$);
  const claim = await firstValueFrom(claim$);
  const append = (...records: readonly NewRecord[]) =>
    lastValueFrom(claim.append$(records), { defaultValue: undefined });
  return { append, leave: () => held.unsubscribe() };
};
const write = async (driver: CallStoreDriver, callId: string, ...records: readonly NewRecord[]) => {
  const { append, leave } = await hold(driver, callId);
  await append(...records);
  leave();
};

/** The operations that work makes. */
const operationsOf = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
  const played: PlayedProcess = { operations: [] };
  await playProcess(played, work);
  return played.operations;
};

describe('the index of calls, in files', () => {
  it('S6: makes lists cost what they show, however many calls there are', async () => {
    const counts: (readonly number[])[] = [];
    for (const count of [60, 600]) {
      const directory = await newDirectory();
      await writeUnindexed(directory, count, 3);
      const store = createCallStore(fileCalls(directory));
      // Builds the index.
      await all(calls$(store));
      await idsIn(store.driver, { sessionId: 's' });
      const costs = async (work: () => Promise<unknown>) => (await operationsOf(work)).length;
      counts.push([
        await costs(() => all(calls$(store).pipe(take(20)))),
        await costs(() => all(calls$(store, { isUnfinished: true }))),
        await costs(() => all(calls$(store, { writtenUntil: 5_000 }))),
        await costs(() => all(calls$(store, { sessionId: 's' }).pipe(take(5)))),
        await costs(() => write(store.driver, 'c7', step)),
      ]);
    }
    expect(counts[1]).toEqual(counts[0]);
    expect(counts[0]?.[0]).toBeLessThan(400);
    expect(counts[0]?.[1]).toBeLessThan(60);
  });

  it('S6: makes a portion of thousands of removals cost few operations for each call', async () => {
    const directory = await newDirectory();
    await writeUnindexed(directory, 300);
    const driver = fileCalls(directory);
    const store = createCallStore(driver);
    await idsIn(driver, { sessionId: 's' });
    const operations = await operationsOf(() => all(prune$(store, { olderThanMs: 0 })));
    expect(operations.length / 300).toBeLessThan(25);
    expect(operations.filter((it) => it.startsWith('sync ')).length).toBeLessThan(5);
    const left = await readdir(directory, { recursive: true });
    const indexes = ['.aside', '.ended', '.millrace-store', '.sessions', '.unfinished'];
    expect(left.toSorted()).toEqual(indexes);
  });

  it('S6: is on disk before the first record, and after the last one, without further waits', async () => {
    const driver = fileCalls(join(await newDirectory(), 'calls'));
    await write(driver, 'first', begins('first', 's'), replyOf('first'));
    const { append, leave } = await hold(driver, 'c');
    const kinds = async (...records: readonly NewRecord[]) =>
      (await operationsOf(() => append(...records)))
        .map((it) => it.replace(/ .*\/(\.?[a-z]+|\d+)[^/]*$/, ' $1'))
        .filter((it) => /^(sync|datasync|append|unlink|writeFile)/.test(it));
    const log: string[] = [];
    await playProcess({ operations: [], log }, () => append(begins('c', 's')));
    const place = (what: RegExp): number => log.findIndex((it) => what.test(it));
    // The index of the session and that of unfinished calls are synced together.
    expect(place(/^begin sync .*\.unfinished$/)).toBeLessThan(place(/^end sync .*\.sessions$/));
    expect(place(/^begin sync .*\.unfinished$/)).toBeGreaterThan(-1);
    const other = await hold(driver, 'other');
    log.splice(0);
    await playProcess({ operations: [], log }, () => other.append(begins('other')));
    other.leave();
    expect(place(/^end sync .*\.unfinished$/)).toBeGreaterThan(-1);
    expect(place(/^end sync .*\.unfinished$/)).toBeLessThan(place(/^begin append/));
    expect(await kinds(step)).toEqual(['append 000001', 'datasync 000001']);
    expect(await kinds({ ...step, kind: 'event' })).toEqual(['append 000001']);
    const ended = await kinds(replyOf('c'));
    expect(ended.filter((it) => /sync/.test(it))).toHaveLength(2);
    expect(ended.at(-1)).toMatch(/^unlink/);
    expect(await kinds({ ...step, kind: 'event', ends: true })).toEqual(['append 000001']);
    leave();
    expect(await idsIn(driver)).toEqual(['c', 'other', 'first']);
    expect(await idsIn(driver, { isUnfinished: true })).toEqual(['other']);
  });

  it('S4, S6: is built once by two processes that list calls without an index', async () => {
    const directory = await newDirectory();
    await writeUnindexed(directory, 40, 5);
    const ids = Array.from({ length: 40 }, (_, at) => `c${at}`);
    const lists = await Promise.all([1, 2, 3].map(() => idsIn(fileCalls(directory))));
    for (const listed of lists) expect(listed.toSorted()).toEqual(ids.toSorted());
    expect(lists[0]?.filter((id) => Number(id.slice(1)) >= 5)).toEqual(ids.slice(5).reverse());
    expect((await idsIn(fileCalls(directory), { isUnfinished: true })).toSorted()).toEqual(
      ids.slice(0, 5),
    );
    expect(await readdir(join(directory, '.aside'))).toEqual([]);
  });

  it('S6: finds a call whose directory was copied here, when all are listed', async () => {
    const directory = await newDirectory();
    const driver = fileCalls(join(directory, 'calls'));
    await write(driver, 'own', begins('own'));
    await writeUnindexed(join(directory, 'calls'), 2, 1);
    expect(await idsIn(driver, { isUnfinished: true })).toEqual(['own']);
    expect((await idsIn(driver)).toSorted()).toEqual(['c0', 'c1', 'own']);
    expect((await idsIn(driver, { isUnfinished: true })).toSorted()).toEqual(['c0', 'own']);
  });

  it('S6: keeps the order in which calls ended, and the time until which they were written', async () => {
    const driver = fileCalls(join(await newDirectory(), 'calls'));
    const open = await Promise.all(['a', 'b', 'c'].map((id) => hold(driver, id)));
    for (const [at, { append, leave }] of open.entries()) {
      await append(begins('abc'.charAt(at)), replyOf('abc'.charAt(at)));
      leave();
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    expect(await idsIn(driver)).toEqual(['c', 'b', 'a']);
    const [, second] = (await all(driver.list$())).flat();
    const until = second?.updatedAt ?? 0;
    expect(await idsIn(driver, { writtenUntil: until })).toEqual(['b', 'a']);
    expect(await idsIn(driver, { writtenUntil: until - 1 })).toEqual(['a']);
    await write(driver, 'a', step);
    expect(await idsIn(driver)).toEqual(['a', 'c', 'b']);
    expect(await idsIn(driver, { isUnfinished: true })).toEqual(['a']);
    await write(driver, 'a', replyOf('a'));
    expect(await idsIn(driver)).toEqual(['a', 'c', 'b']);
    expect(await idsIn(driver, { isUnfinished: true })).toEqual([]);
  });
});

describe('removeAll$, in files', () => {
  it('S6: never removes an open call, for any process that has it open', async () => {
    const directory = join(await newDirectory(), 'calls');
    const [first, second] = [fileCalls(directory), fileCalls(directory)];
    const ids = Array.from({ length: 12 }, (_, at) => `c${at}`);
    for (const id of ids) await write(first, id, begins(id, 's'), replyOf(id));
    const held = [await hold(first, 'c1'), await hold(second, 'c2')];
    const removed = (await all(first.removeAll$([...ids, 'unknown', 'c0']))).flat();
    const left = ['c1', 'c2'];
    const gone = ids.filter((id) => !left.includes(id));
    expect(removed.map(({ callId }) => callId).toSorted()).toEqual([...gone, 'unknown'].toSorted());
    expect(removed.filter(({ sessionId }) => sessionId === 's')).toHaveLength(gone.length);
    for (const { append } of held) await append(step);
    held.forEach(({ leave }) => leave());
    expect((await idsIn(first, { sessionId: 's' })).toSorted()).toEqual(left);
    expect((await idsIn(second)).toSorted()).toEqual(left);
  }, 60_000);

  it('S6: leaves each call to a claim or to the removal, if both come at the same time', async () => {
    const directory = join(await newDirectory(), 'calls');
    const [first, second] = [fileCalls(directory), fileCalls(directory)];
    for (let round = 0; round < 30; round += 1) {
      const id = `c${round}`;
      await write(first, id, begins(id), replyOf(id));
      const [{ append, leave }, removed] = await Promise.all([
        hold(second, id),
        all(first.removeAll$([id])),
      ]);
      await append(step);
      leave();
      const names = (await all(first.read$(id))).flat().map(({ name }) => name);
      const wasRemoved = removed.flat().length > 0;
      expect(names).toEqual(wasRemoved ? ['step'] : [`${id}/call`, `${id}/reply`, 'step']);
      expect(await idsIn(first, { isUnfinished: true })).toContain(id);
    }
  }, 120_000);
});
