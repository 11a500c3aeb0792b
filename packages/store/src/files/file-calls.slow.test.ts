import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { journalContract } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { checkEmptyClaims } from '../empty-claims.test-support.js';
import { storedName } from '../stored-name.js';
import { expireLock } from './expire-lock.test-support.js';
import { fileCalls } from './file-calls.js';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'calls-'));
});
afterAll(() => rm(root, { recursive: true }));

describe('fileCalls', () => {
  const contract = journalContract(async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const options = { leaseMs: 2_000 };
    const store = openFiles(directory, options);
    return {
      first: store.calls.driver,
      second: fileCalls(join(directory, 'calls'), options),
      expire: (callId) => expireLock(join(directory, 'calls', `${storedName(callId)}.lock`)),
      close: () => closeStore(store),
    };
  });
  for (const { name, run } of contract) it.concurrent(`S6: ${name}`, run);

  it('S6: keeps nothing of a call without a record', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    await checkEmptyClaims(fileCalls(directory));
    await firstValueFrom(fileCalls(directory).claim$('other'));
    expect((await readdir(directory)).filter((name) => !name.startsWith('.'))).toEqual([
      storedName('empty'),
    ]);
  });

  it('S6: does not list what a process that was killed had not begun to write', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const calls = fileCalls(directory);
    const hold = calls.claim$('c').subscribe({ error: () => undefined });
    const list = async () => (await lastValueFrom(calls.list$().pipe(toArray()))).flat();
    while ((await list()).length === 0);
    await expireLock(join(directory, `${storedName('c')}.lock`));
    expect(await list()).toEqual([]);
    hold.unsubscribe();
  });

  const isLinux = existsSync('/proc/self');
  (isLinux ? it : it.skip)('C7: fails where no directory can be made', async () => {
    const claimed = firstValueFrom(openFiles('/proc/millrace').calls.driver.claim$('c'));
    await expect(claimed).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('cannot be created. Choose another directory'),
    });
  });
});
