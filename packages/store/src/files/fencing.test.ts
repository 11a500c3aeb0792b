import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CallStoreDriver, Claim } from '@millrace/core/journal';
import { lastValueFrom, map, ReplaySubject, firstValueFrom, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { fileCalls } from './file-calls.js';

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

it('S7: what a writer was told is written stays, and nothing else, whenever another one takes over', async () => {
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
    await utimes(join(root, `${storedName('c')}.lock`), 0, 0);
  }
  const { claim, leave } = hold(fileCalls(root, { leaseMs: 2_000 }));
  await claim;
  await Promise.all(writers);
  const stored = await names(fileCalls(root));
  expect(new Set(stored).size).toBe(stored.length);
  expect([...stored].sort()).toEqual([...acknowledged].sort());
  expect(refused.length).toBeGreaterThan(0);
  [...stopped, leave].forEach((stop) => stop());
}, 30_000);
