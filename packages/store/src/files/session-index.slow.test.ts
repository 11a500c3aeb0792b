import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createAgent } from 'millrace';
import { type CallStoreDriver, createCallStore, journal, type StoredCall } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { concatMap, firstValueFrom, lastValueFrom, tap, toArray } from 'rxjs';
import { fileCalls } from './file-calls.js';
import { fileSessions } from './file-sessions.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'marks-'));
});
afterAll(() => rm(root, { recursive: true }));

const begin = (driver: CallStoreDriver, callId: string, sessionId: string): Promise<unknown> => {
  const record = { version: 1, agent: 'a', sessionId, input: [], options: {}, given: [] };
  const step = {
    kind: 'step',
    name: `${callId}/call`,
    seq: 0,
    text: JSON.stringify(record),
  } as const;
  return firstValueFrom(
    driver.claim$(callId).pipe(concatMap(({ append$ }) => append$([step]).pipe(toArray()))),
  );
};

const idsOf = async (driver: CallStoreDriver, sessionId: string): Promise<readonly string[]> =>
  (await lastValueFrom(driver.list$({ sessionId }).pipe(toArray())))
    .flat()
    .map(({ callId }) => callId);

describe('the calls of a session, in files', () => {
  it('S6: are found in a directory that has no marks yet', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    for (const id of ['one', 'two', 'other', 'three']) {
      await begin(fileCalls(directory), id, id === 'other' ? 't' : 's');
    }
    await rm(join(directory, '.sessions'), { recursive: true });
    await begin(fileCalls(directory), 'four', 's');
    expect(await idsOf(fileCalls(directory), 's')).toEqual(['four', 'three', 'two', 'one']);
    await rm(join(directory, '.sessions'), { recursive: true });
    expect(await idsOf(fileCalls(directory), 's')).toEqual(['four', 'three', 'two', 'one']);
  });

  it('S6: leave nothing when they are removed', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const driver = fileCalls(directory);
    await begin(driver, 'one', 's');
    await begin(driver, 'two', 's');
    for (const id of ['one', 'two']) {
      await lastValueFrom(driver.remove$(id), { defaultValue: undefined });
    }
    expect(await readdir(join(directory, '.sessions'))).toEqual([]);
    await begin(driver, 'three', 's');
    expect(await idsOf(driver, 's')).toEqual(['three']);
  });

  it('S6, S9: are the only ones that are read when it resumes, and few of them, for any clock', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const driver = fileCalls(join(directory, 'calls'));
    for (let at = 0; at < 40; at += 1) await begin(driver, `other${at}`, 't');
    const read: StoredCall[] = [];
    const counted: CallStoreDriver = {
      ...driver,
      list$: (query) => driver.list$(query).pipe(tap((calls) => read.push(...calls))),
    };
    const durable = journal(createCallStore(counted));
    const answers = Array.from({ length: 160 }, () => [text('ok')]);
    const agent = createAgent({ model: scriptedModel(...answers), use: [durable] });
    const open = () =>
      keepSessions(agent, fileSessions(join(directory, 'sessions')), { journal: durable }).open(
        's',
      );
    const session = await open();
    for (let at = 0; at < 160; at += 1) await session.call('?');
    const again = await open();
    expect(await again.resume()).toBeUndefined();
    expect(read.length).toBeGreaterThan(0);
    // Half of the calls that a state remembers: an older one may be lacking, too.
    expect(read.length).toBeLessThanOrEqual(60);
    expect(new Set(read.map(({ callId }) => callId.startsWith('other')))).toEqual(new Set([false]));
    const before = read.splice(0).length;
    for (const days of [-400, 400]) {
      const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + days * 86_400_000);
      try {
        expect(await (await open()).resume()).toBeUndefined();
      } finally {
        clock.mockRestore();
      }
      expect(read.splice(0)).toHaveLength(before);
    }
  });
});
