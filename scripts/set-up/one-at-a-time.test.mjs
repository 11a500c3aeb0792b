import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { oneAtATime } from './one-at-a-time.mjs';

const alive = String(process.ppid);
const gone = '2147483647';

let folder;
let lock;
const ownerOf = () => readFileSync(lock, 'utf8');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  lock = join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

it('holds the lock while it works, and only then', async () => {
  const onWait = jest.fn();
  expect(await oneAtATime(lock, ownerOf, onWait)).toBe(String(process.pid));
  expect(existsSync(lock)).toBe(false);
  expect(onWait).not.toHaveBeenCalled();
});

it('gives the lock back when the work fails', async () => {
  await expect(oneAtATime(lock, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(existsSync(lock)).toBe(false);
});

it('waits for a living owner, and reports it once', async () => {
  writeFileSync(lock, alive);
  const onWait = jest.fn(() => rmSync(lock));
  expect(await oneAtATime(lock, ownerOf, onWait)).toBe(String(process.pid));
  expect(onWait).toHaveBeenCalledTimes(1);
});

it.each([
  ['an owner that is gone', () => writeFileSync(lock, gone)],
  ['a former process with our own id', () => writeFileSync(lock, String(process.pid))],
  [
    'more than 15 minutes ago',
    () => {
      writeFileSync(lock, alive);
      utimesSync(lock, 0, Date.now() / 1000 - 16 * 60);
    },
  ],
])('takes over the lock of %s', async (_, leave) => {
  leave();
  const onWait = jest.fn();
  expect(await oneAtATime(lock, ownerOf, onWait)).toBe(String(process.pid));
  expect(onWait).not.toHaveBeenCalled();
});
