import fs from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openEmbedded } from './open-embedded.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'full-'));
});
afterEach(() => rm(directory, { recursive: true }));

it('X1: a full disk is a store error that says so, and the database opens when there is room', async () => {
  const store = openEmbedded(directory, { onProgress: () => undefined });
  const calls = () => lastValueFrom(store.calls.driver.list$(), { defaultValue: [] });
  const full = jest.spyOn(fs, 'writeSync').mockImplementation(() => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  try {
    await expect(calls()).rejects.toMatchObject({
      code: 'store',
      message: `The store in ${directory} failed: the disk is full. Free some space, then retry.`,
      retryable: true,
    });
  } finally {
    full.mockRestore();
    syncBuiltinESMExports();
  }
  expect(await calls()).toEqual([]);
  await closeStore(store);
});

it('X1: openEmbedded() without a directory says what to do', () => {
  const unset = process.env['MILLRACE_NO_SUCH_DIRECTORY'] as string;
  expect(() => openEmbedded(unset)).toThrow(
    "openEmbedded() needs the path of a directory, such as './data', not undefined.",
  );
});
