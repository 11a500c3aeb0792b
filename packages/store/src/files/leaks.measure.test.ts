import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { concatMap, defer, firstValueFrom, lastValueFrom, mergeMap, range, take } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'leaks-'));
});
afterAll(() => rm(root, { recursive: true }));

/** What a process holds. */
const held = async () => {
  const kinds = process.getActiveResourcesInfo();
  return {
    files: process.platform === 'linux' ? (await readdir('/proc/self/fd')).length : 0,
    timers: kinds.filter((kind) => kind === 'Timeout').length,
    watchers: kinds.filter((kind) => kind === 'FSEventWrap').length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
  };
};

it('X18: a thousand calls that were written, followed and left hold no file, timer or listener', async () => {
  const store = openFiles(root);
  const { claim$, changes$, read$ } = store.calls.driver;
  const event = { kind: 'event', name: 'e', seq: 1, text: '{}' } as const;
  const call$ = (at: number) =>
    defer(() =>
      claim$(`c${at}`).pipe(
        take(1),
        concatMap((claim) => claim.append$([event])),
        concatMap(() => changes$(`c${at}`).pipe(take(1))),
        concatMap(() => read$(`c${at}`)),
      ),
    );
  await firstValueFrom(call$(0));
  const before = await held();
  await lastValueFrom(range(1, 1_000).pipe(mergeMap(call$, 16)));
  // Files are closed behind the end of a call.
  for (let looks = 0; looks < 1_000 && (await held()).files > before.files; looks += 1);
  const after = await held();
  expect(after.files).toBeLessThanOrEqual(before.files + 1);
  expect(after.timers).toBeLessThanOrEqual(before.timers + 1);
  expect([after.watchers, after.listeners]).toEqual([before.watchers, before.listeners]);
  const names = await readdir(join(root, 'calls'));
  expect(names.filter((name) => name.endsWith('.lock'))).toEqual([]);
  await closeStore(store);
});
