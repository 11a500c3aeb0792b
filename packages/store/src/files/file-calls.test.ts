import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it, jest } from '@jest/globals';
import { journalContract } from '@millrace/core/testing';
import { closeStore } from '../close-store.test-support.js';
import { storedName } from '../stored-name.js';
import { expireLock } from './expire-lock.test-support.js';
import { fileCalls } from './file-calls.js';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(60_000);

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
});
