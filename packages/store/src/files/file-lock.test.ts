import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { LeaseAttempt, ObservedHolder } from '../acquire-lease.js';
import { createStaging } from './staging.js';
import { expireLock } from './expire-lock.test-support.js';
import { type FileLock, type FileLockOptions, isLocked, processIn, tryLock } from './file-lock.js';
import { processStatus, newHolderId } from './holder-id.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let made = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'lock-'));
});
afterAll(() => rm(root, { recursive: true }));

const options = { leaseMs: 2_000, onLost: () => undefined };
const newPath = (): string => join(root, `${(made += 1)}.lock`);
const attempt = (path: string, more: Partial<FileLockOptions> = {}, seen?: ObservedHolder) =>
  tryLock(path, createStaging(root), { ...options, ...more }, seen);
const lockIn = (tried: LeaseAttempt<FileLock>): FileLock => {
  if ('lease' in tried) return tried.lease;
  throw new Error('It is not had.');
};
const signIn = (tried: LeaseAttempt<FileLock>): string => ('holder' in tried ? tried.holder : '');

/** A lock that a process has which is not seen from here, such as one of another machine. */
const foreign = async (): Promise<string> => {
  const path = newPath();
  await mkdir(path);
  await writeFile(join(path, newHolderId().replace(/^\w+/, '0123456789abcdef')), '');
  return path;
};

describe('tryLock', () => {
  it('S7: is had by one, until it is given back', async () => {
    const path = newPath();
    const tried = await Promise.all([attempt(path), attempt(path), attempt(path)]);
    const locks = tried.flatMap((it) => ('lease' in it ? [it.lease] : []));
    expect(locks).toHaveLength(1);
    expect(await isLocked(path, 2_000)).toBe(true);
    locks[0]?.release();
    expect(locks[0]?.isHeld()).toBe(false);
    expect(await isLocked(path, 2_000)).toBe(false);
    expect(await readdir(root)).not.toContain(basename(path));
    lockIn(await attempt(path)).release();
  });

  it('S7: is taken over immediately from a process that is gone, by one of many', async () => {
    const path = newPath();
    const lost = lockIn(await attempt(path));
    await expireLock(path);
    const tried = await Promise.all(Array.from({ length: 20 }, () => attempt(path)));
    const locks = tried.flatMap((it) => ('lease' in it ? [it.lease] : []));
    expect(locks).toHaveLength(1);
    expect([lost.isHeld(), locks[0]?.isHeld()]).toEqual([false, true]);
    lost.release();
    expect(locks[0]?.isHeld()).toBe(true);
    locks[0]?.release();
  });

  it.each([0, Date.now() / 1_000 + 1e7])(
    'S7: is taken over from an unseen process that was silent for its lease, for any clock of its file (%d)',
    async (at) => {
      const path = await foreign();
      const [name = ''] = await readdir(path);
      await utimes(join(path, name), at, at);
      const holder = signIn(await attempt(path));
      expect(processIn(holder)).toBe(process.pid);
      for (const seen of [
        { holder, forMs: 1_999 },
        { holder: 'other', forMs: 9_999 },
      ]) {
        expect(signIn(await attempt(path, {}, seen))).toBe(holder);
      }
      expect(await isLocked(path, 2_000)).toBe(false);
      lockIn(await attempt(path, {}, { holder, forMs: 2_000 })).release();
    },
  );

  it('S7: reports once which writer has lost it', async () => {
    const path = newPath();
    const heard = new Promise<void>((resolve) => {
      void attempt(path, { onLost: resolve }).then(() => expireLock(path));
    });
    await heard;
  });

  it('S7: is not misled by what others put there', async () => {
    const path = newPath();
    await mkdir(path);
    lockIn(await attempt(path)).release();
    await mkdir(path);
    await writeFile(join(path, '.DS_Store'), '');
    expect(await attempt(path)).toEqual({ holder: '' });
  });
});

describe('processStatus', () => {
  it('S7: knows which writer is gone, and claims nothing of one that it does not see', () => {
    const own = newHolderId();
    expect(processStatus(own)).toBe('unknown');
    expect(processStatus('x')).toBe('unknown');
    if (process.platform !== 'linux') return;
    const parts = own.split('.');
    expect(processStatus(parts.with(1, '9999999').join('.'))).toBe('gone');
    // Another process has its number by now.
    expect(processStatus(parts.with(1, String(process.ppid)).with(2, '1').join('.'))).toBe('gone');
  });
});

describe('createStaging', () => {
  it('S6: clears what crashes have left, and nothing that a process is making', async () => {
    const place = join(await mkdtemp(join(root, 'store-')), '.aside');
    const own = newHolderId();
    const gone = own.split('.').with(1, '9999999').join('.');
    const old = newHolderId();
    for (const name of [gone, own, old]) {
      await mkdir(join(place, name, 'inner'), { recursive: true });
    }
    await utimes(join(place, old), 0, 0);
    const aside = createStaging(join(place, '..'));
    await aside.discard(join(place, '../nothing'));
    expect(await readdir(place)).toHaveLength(3);
    expect(await aside.create(join(place, '../a'), (path) => mkdir(join(path, 'b')))).toBe(true);
    expect(await readdir(place)).toEqual([own]);
    expect(await aside.create(join(place, '../a'), (path) => mkdir(join(path, 'b')))).toBe(false);
    expect((await stat(join(place, '../a'))).mode & 0o777).toBe(0o700);
    await aside.discard(join(place, '../a'));
    expect((await readdir(join(place, '..'))).concat(await readdir(place))).toEqual([
      '.aside',
      own,
    ]);
  });
});
