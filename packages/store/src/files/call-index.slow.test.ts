import { existsSync } from 'node:fs';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CallStoreDriver, Claim, NewRecord, StoredCall } from 'millrace/journal';
import { firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import { parseStoredName, storedName } from '../stored-name.js';
import {
  expireAll,
  killedBefore,
  loadPlayed,
  playProcess,
} from './file-operations.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let fileCalls: (directory: string) => CallStoreDriver;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'index-'));
  ({ fileCalls } = await loadPlayed(() => import('./file-calls.js')));
});
afterAll(() => rm(root, { recursive: true }));

const begins = (callId: string, sessionId = 's'): NewRecord => {
  const text = JSON.stringify({ version: 1, agent: 'a', sessionId, input: [] });
  return { kind: 'step', name: `${callId}/call`, seq: 0, text };
};
const step: NewRecord = { kind: 'step', name: 'step', seq: 1, text: '1' };
const event: NewRecord = { kind: 'event', name: 'event', seq: 1, text: '{}' };
const reply: NewRecord = { kind: 'step', name: 'reply', seq: 2, text: '1', ends: true };
const postCall: NewRecord = { kind: 'event', name: 'postCall', seq: 3, text: '{}', ends: true };

/** Claims a call, appends batches, and releases it. */
const write = async (
  driver: CallStoreDriver,
  callId: string,
  ...batches: readonly (readonly NewRecord[])[]
): Promise<void> => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$(callId).subscribe(claim$);
  try {
    const claim = await firstValueFrom(claim$);
    for (const batch of batches) await lastValueFrom(claim.append$(batch), { defaultValue: 0 });
  } finally {
    held.unsubscribe();
  }
};
const list = async (
  driver: CallStoreDriver,
  query?: Parameters<CallStoreDriver['list$']>[0],
): Promise<readonly StoredCall[]> =>
  (await lastValueFrom(driver.list$(query).pipe(toArray()))).flat();
const idsIn = async (...given: Parameters<typeof list>): Promise<readonly string[]> =>
  (await list(...given)).map(({ callId }) => callId).sort();
const names = (directory: string): Promise<readonly string[]> => readdir(directory).catch(() => []);
const lastIn = async (driver: CallStoreDriver, callId: string): Promise<string | undefined> =>
  (await lastValueFrom(driver.read$(callId).pipe(toArray()))).flat().at(-1)?.name;

/** What a directory has, and what its indexes say of it. */
const checkIndexes = async (directory: string, sessionIds = ['s']): Promise<void> => {
  const driver = fileCalls(directory);
  const ids = (await names(directory)).flatMap((name) => {
    const id = /^i-[^.]*$/.test(name) ? parseStoredName(name) : undefined;
    return id === undefined ? [] : [id];
  });
  const last = new Map<string, string>();
  for (const id of ids) {
    const name = await lastIn(driver, id);
    if (name !== undefined) last.set(id, name);
  }
  const stored = [...last.keys()].sort();
  const unfinished = stored.filter((id) => !/^(reply|postCall)$/.test(last.get(id) ?? ''));
  const ended = stored.filter((id) => !unfinished.includes(id));
  expect(await idsIn(driver, { isUnfinished: true })).toEqual(unfinished);
  expect(await idsIn(driver)).toEqual(stored);
  expect(await idsIn(driver, { writtenUntil: Date.now() + 1_000 })).toEqual(stored);
  for (const sessionId of sessionIds) {
    expect(await idsIn(driver, { sessionId })).toEqual(stored);
    expect(await idsIn(driver, { sessionId, isUnfinished: true })).toEqual(unfinished);
  }
  // A list has corrected what was wrong.
  const entries: string[] = [];
  for (const bucket of await names(join(directory, '.ended'))) {
    entries.push(...(await names(join(directory, '.ended', bucket))));
  }
  const withRecords = (await names(join(directory, '.unfinished'))).filter((name) =>
    last.has(parseStoredName(name) ?? ''),
  );
  expect(withRecords.sort()).toEqual(unfinished.map(storedName).sort());
  const endedNames = entries.map((name) => parseStoredName(name.replace(/^\d+\./, '')) ?? '');
  // One of a later time is left, as it could belong to a record that is being written.
  expect([...new Set(endedNames)].filter((id) => ended.includes(id)).sort()).toEqual(ended);
  for (const id of endedNames) expect(ids).toContain(id);
  // The next claim takes over a lock that a crash has left. One without a call is gone.
  const locked = (await names(directory)).filter((name) => name.endsWith('.lock'));
  expect(locked.filter((name) => !existsSync(join(directory, name.slice(0, -5))))).toEqual([]);
  for (const sessionId of sessionIds) {
    const own = await names(join(directory, '.sessions', storedName(sessionId)));
    const found = own.map((name) => parseStoredName(name.replace(/^\d+\./, '')) ?? '');
    expect(found.filter((id) => last.has(id)).sort()).toEqual(stored);
  }
};

/** A directory with calls that have ended, and one that has not. */
const given = async (): Promise<string> => {
  const directory = await mkdtemp(join(root, 'given-'));
  const driver = fileCalls(directory + '/calls');
  for (const id of ['a', 'b']) await write(driver, id, [begins(id)], [step, reply], [postCall]);
  await write(driver, 'c', [begins('c')], [step]);
  return directory + '/calls';
};
const withoutIndex = async (directory: string): Promise<void> => {
  for (const name of ['.ended', '.unfinished']) {
    await rm(join(directory, name), { recursive: true });
  }
};

const realNow = Date.now;

type Script = readonly [
  what: string,
  prepare: (directory: string) => Promise<unknown>,
  run: (driver: CallStoreDriver) => Promise<unknown>,
];
const nothing = (): Promise<void> => Promise.resolve();
const remove = (driver: CallStoreDriver, ids: readonly string[]) =>
  lastValueFrom(driver.removeAll$(ids).pipe(toArray()));
const scripts: readonly Script[] = [
  [
    'a call is written',
    nothing,
    (it) => write(it, 'd', [begins('d')], [event], [step], [reply], [postCall]),
  ],
  ['a call begins and ends at once', nothing, (it) => write(it, 'd', [begins('d'), reply])],
  ['an ended call continues', nothing, (it) => write(it, 'a', [step], [event], [reply])],
  ['an ended call ends again', nothing, (it) => write(it, 'a', [postCall])],
  ['an unfinished call is resumed', nothing, (it) => write(it, 'c', [step], [reply])],
  ['a call is claimed and left', nothing, (it) => write(it, 'd')],
  ['calls are removed', nothing, (it) => remove(it, ['a', 'c', 'unknown'])],
  ['a call is removed', nothing, (it) => lastValueFrom(it.remove$('b'), { defaultValue: 0 })],
  ['an index is built', withoutIndex, (it) => list(it)],
  [
    'a call is written without an index',
    withoutIndex,
    (it) => write(it, 'd', [begins('d')], [reply]),
  ],
];

describe('the index of calls, in files', () => {
  it.each(scripts)(
    'S6: is right wherever a process is killed while %s',
    async (_, prepare, run) => {
      const from = await given();
      await prepare(from);
      let wasKilled = true;
      let cut = 0;
      for (; wasKilled; cut += 1) {
        const directory = await mkdtemp(join(root, 'cut-'));
        await cp(from, directory, { recursive: true, preserveTimestamps: true });
        const played = killedBefore(cut);
        await playProcess(played, () => run(fileCalls(directory)));
        wasKilled = played.isDead === true;
        await expireAll(directory);
        // A removal that was broken off a while ago.
        jest.spyOn(Date, 'now').mockReturnValue(realNow() + 120_000);
        await checkIndexes(directory);
        await write(fileCalls(directory), 'c', [begins('c'), step, reply]);
        await write(fileCalls(directory), 'a', [begins('a'), step]);
        await checkIndexes(directory);
        await remove(fileCalls(directory), ['a', 'b', 'c', 'd']);
        await checkIndexes(directory);
        jest.restoreAllMocks();
        expect(cut).toBeLessThan(200);
        await rm(directory, { recursive: true });
      }
      expect(cut).toBeGreaterThan(8);
    },
  );
});
