import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Claim } from 'millrace/journal';
import { journalContract } from 'millrace/testing';
import {
  asyncScheduler,
  concatMap,
  endWith,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  ReplaySubject,
  toArray,
} from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { checkEmptyClaims } from '../empty-claims.test-support.js';
import { storedName } from '../stored-name.js';
import { changeFile } from './change-file.test-support.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
const stores: ReturnType<typeof openSqlite>[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sqlite-'));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => closeStore(store)));
  await rm(root, { recursive: true });
});

let made = 0;
const newPath = (): string => join(root, `${(made += 1)}.db`);
const open = (path: string) => {
  const store = openSqlite(path, { leaseMs: 2_000 });
  stores.push(store);
  return store;
};
const step = { kind: 'step', name: 'a', seq: 0, text: '1' } as const;

describe('openSqlite: calls', () => {
  const contract = journalContract(() => {
    const path = newPath();
    const [first, second] = [open(path), open(path)];
    return {
      first: first.calls.driver,
      second: second.calls.driver,
      expire: (callId) =>
        changeFile(path, (file) => {
          const statement = file.prepare('update calls set owner = null where key = ?');
          expect(statement.run([storedName(callId)])).toBe(1);
        }),
      close: () => closeStore(first),
    };
  });
  for (const { name, run } of contract) it(`S6: ${name}`, run);

  it('S6: keeps the times of a clock with fractions', async () => {
    // Virtual time and performance.now() have fractions.
    const scheduler = Object.assign(Object.create(asyncScheduler) as typeof asyncScheduler, {
      now: () => 1_700_000_000_000.75,
    });
    const store = openSqlite(newPath(), { scheduler });
    stores.push(store);
    const written$ = store.calls.driver
      .claim$('c')
      .pipe(concatMap((claim) => claim.append$([step]).pipe(ignoreElements(), endWith('written'))));
    expect(await firstValueFrom(written$)).toBe('written');
    const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const state = { version: 1, groups: {}, approvals: [], usage, interrupted: false } as const;
    const saved$ = store.sessions.save$('s', { messages: [], ...state }, undefined);
    await lastValueFrom(saved$, { defaultValue: undefined });
    const at = 1_700_000_000_000;
    expect(await lastValueFrom(store.calls.driver.list$())).toMatchObject([{ updatedAt: at }]);
    expect(await firstValueFrom(store.sessions.load$('s'))).toMatchObject({ version: 1 });
    const recorded$ = store.longTermMemory.record$({ userId: 'u' }, [{ text: 'Likes tea.' }]);
    expect(await firstValueFrom(recorded$)).toHaveLength(1);
  });

  it('S6: keeps no call without records', () => checkEmptyClaims(open(newPath()).calls.driver));
});

describe('openSqlite', () => {
  it('S6: finds again what was there, and its calls are free when it is closed', async () => {
    const path = newPath();
    const store = open(path);
    const claimed = new ReplaySubject<Claim>(1);
    const held = store.calls.driver.claim$('held').subscribe({
      next: (claim) => claimed.next(claim),
      error: () => undefined,
    });
    const claim = await firstValueFrom(claimed);
    await lastValueFrom(claim.append$([step]));
    await closeStore(store);
    await expect(lastValueFrom(claim.append$([step]))).rejects.toMatchObject({
      code: 'store',
      message: 'The store is closed. Open it again.',
    });
    // What is left is one file.
    expect(readdirSync(root).filter((name) => join(root, name).startsWith(path))).toHaveLength(1);
    const again = open(path);
    const records = await lastValueFrom(again.calls.driver.read$('held').pipe(toArray()));
    expect(records.flat()).toEqual([{ ...step, position: 1 }]);
    await firstValueFrom(again.calls.driver.claim$('held'));
    held.unsubscribe();
  });

  it('S6: opens nothing before its first use, and closes without one', async () => {
    const path = join(root, 'unused', 'calls.db');
    await closeStore(open(path));
    expect(existsSync(join(root, 'unused'))).toBe(false);
  });

  it('S6, X17: makes its directory and its file for this user alone, and marks the directory', async () => {
    const path = join(root, 'new', 'below', 'calls.db');
    const store = open(path);
    await firstValueFrom(store.calls.driver.claim$('c'));
    expect(readdirSync(join(root, 'new', 'below'))).toContain('.millrace-store');
    expect(readdirSync(join(root, 'new'))).not.toContain('.millrace-store');
    const modes = [
      join(root, 'new'),
      join(root, 'new', 'below'),
      path,
      `${path}-wal`,
      `${path}-shm`,
    ];
    expect(modes.map((it) => (statSync(it).mode & 0o777).toString(8))).toEqual([
      '700',
      '700',
      '600',
      '600',
      '600',
    ]);
  });

  it('S6: has removed the calls of a portion that no process has open, and unknown ones', async () => {
    const { driver } = open(newPath()).calls;
    const ids = Array.from({ length: 1_200 }, (_, at) => `c${at}`);
    const begun = { ...step, kind: 'event', name: 'preCall' } as const;
    for (const callId of ['c1', 'c2', 'c700']) {
      await firstValueFrom(driver.claim$(callId)).then(() => undefined);
      const claims = new ReplaySubject<Claim>(1);
      const hold = driver.claim$(callId).subscribe(claims);
      const { append$ } = await firstValueFrom(claims);
      await lastValueFrom(append$([begun, step]));
      if (callId !== 'c2') hold.unsubscribe();
    }
    const portions = await lastValueFrom(driver.removeAll$(ids).pipe(toArray()));
    expect(portions.map(({ length }) => length)).toEqual([499, 500, 200]);
    expect(portions.flat().map(({ callId }) => callId)).toEqual(ids.filter((id) => id !== 'c2'));
    const left = await lastValueFrom(driver.list$().pipe(toArray()));
    expect(left.flat().map(({ callId }) => callId)).toEqual(['c2']);
  });
});
