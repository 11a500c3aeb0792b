import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { CallStoreDriver, Claim } from 'millrace/journal';
import { lastValueFrom, map, ReplaySubject, firstValueFrom, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { expireLock } from './expire-lock.test-support.js';
import { fileCalls } from './file-calls.js';
import { openSegment } from './open-segment.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencing-'));
});
afterAll(() => rm(root, { recursive: true }));

const names = async (driver: CallStoreDriver): Promise<readonly string[]> =>
  (
    await lastValueFrom(
      driver.read$('c').pipe(
        map((records) => records.map(({ name }) => name)),
        toArray(),
      ),
    )
  ).flat();

const hold = (driver: CallStoreDriver) => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$('c').subscribe(claim$);
  return { claim: firstValueFrom(claim$), leave: () => held.unsubscribe() };
};

it('S7: a confirmed record stays, and nothing else, whenever another writer takes over', async () => {
  const acknowledged: string[] = [];
  const refused: string[] = [];
  const stopped: (() => void)[] = [];
  const write = async (claim: Claim, writer: number): Promise<void> => {
    for (let at = 0; ; at += 1) {
      const records = ['a', 'b'].map((part) => {
        const name = `${writer}/${at}${part}`;
        return { kind: at % 3 === 0 ? 'step' : 'event', name, seq: at, text: '1' } as const;
      });
      try {
        await lastValueFrom(claim.append$(records), { defaultValue: undefined });
        acknowledged.push(...records.map(({ name }) => name));
      } catch (error) {
        expect(error).toMatchObject({ code: 'conflict' });
        refused.push(...records.map(({ name }) => name));
        return;
      }
    }
  };
  const writers: Promise<void>[] = [];
  for (let writer = 0; writer < 25; writer += 1) {
    const { claim, leave } = hold(fileCalls(root, { leaseMs: 2_000 }));
    const held = await claim;
    stopped.push(leave);
    writers.push(write(held, writer));
    const seen = await names(fileCalls(root));
    while ((await names(fileCalls(root))).length < seen.length + 1 + (writer % 7));
    await expireLock(join(root, `${storedName('c')}.lock`));
  }
  const { claim, leave } = hold(fileCalls(root, { leaseMs: 2_000 }));
  await claim;
  await Promise.all(writers);
  const stored = await names(fileCalls(root));
  expect(new Set(stored).size).toBe(stored.length);
  expect([...stored].sort()).toEqual([...acknowledged].sort());
  expect(refused.length).toBeGreaterThan(0);
  [...stopped, leave].forEach((stop) => stop());
}, 180_000);

it('S7: what is being written when another one takes over counts for both, or for neither', async () => {
  const big = { kind: 'event', name: 'big', seq: 1, text: 'x'.repeat(3_000_000) } as const;
  for (let delay = 0; delay < 30; delay += 1) {
    const directory = await mkdtemp(join(root, 'store-'));
    const { claim, leave } = hold(fileCalls(directory));
    const appended = lastValueFrom((await claim).append$([big, big]), { defaultValue: 0 }).then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'conflict' });
        return false;
      },
    );
    for (let turn = 0; turn < delay; turn += 1) await setImmediate();
    const segment = await openSegment(join(directory, storedName('c')), 'c', 0);
    const isWritten = await appended;
    const stored = await names(fileCalls(directory));
    expect(stored).toEqual(isWritten ? ['big', 'big'] : []);
    expect(segment?.cursor.position).toBe(stored.length);
    await segment?.file.close();
    leave();
  }
}, 180_000);

const step = (name: string, content = '1') =>
  ({ kind: 'step', name, seq: 1, text: content }) as const;
const append = (claim: Claim, name: string, content?: string): Promise<unknown> =>
  lastValueFrom(claim.append$([step(name, content)]), { defaultValue: 'written' });
/** The writers before it do not write in time. */
const expire = (directory: string) => expireLock(join(directory, `${storedName('c')}.lock`));

it('S7: a refused step never comes back, also if the one who took over leaves without a record', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const first = hold(fileCalls(directory));
  const claim = await first.claim;
  await expire(directory);
  const second = hold(fileCalls(directory));
  await second.claim;
  await expect(append(claim, 'late')).rejects.toMatchObject({ code: 'conflict' });
  second.leave();
  first.leave();
  expect(await names(fileCalls(directory))).toEqual([]);
});

it('S7: a writer of a call that was removed and begun again is refused', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const first = hold(fileCalls(directory));
  const claim = await first.claim;
  await append(claim, 'first');
  await expire(directory);
  await lastValueFrom(fileCalls(directory).remove$('c'), { defaultValue: undefined });
  const again = hold(fileCalls(directory));
  await append(await again.claim, 'again', 'x'.repeat(5_000));
  again.leave();
  const next = hold(fileCalls(directory));
  await next.claim;
  await expect(append(claim, 'late')).rejects.toMatchObject({ code: 'conflict' });
  expect(await names(fileCalls(directory))).toEqual(['again']);
  next.leave();
  first.leave();
});

it('S7: the first step of a call whose directory was deleted reports it, and ends its claim', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const claim$ = new ReplaySubject<Claim>(1);
  const held = fileCalls(directory).claim$('c').subscribe(claim$);
  const claim = await firstValueFrom(claim$);
  await lastValueFrom(claim.append$([{ ...step('event'), kind: 'event' }]), { defaultValue: 0 });
  await rm(join(directory, storedName('c')), { recursive: true });
  const gone = { code: 'store', message: expect.stringContaining('moved or deleted') as unknown };
  await expect(append(claim, 'late')).rejects.toMatchObject(gone);
  await expect(lastValueFrom(claim$)).rejects.toMatchObject(gone);
  held.unsubscribe();
});
