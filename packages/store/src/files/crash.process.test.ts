import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Claim, StoredRecord } from 'millrace/journal';
import {
  firstValueFrom,
  lastValueFrom,
  repeat,
  ReplaySubject,
  retry,
  skipWhile,
  toArray,
} from 'rxjs';
import {
  killedAfter,
  namesOfBatches,
  startProcess,
  writing,
} from '../writing-process.test-support.js';
import { killWhileBranching } from '../memory/branching-process.test-support.js';
import { fileCalls } from './file-calls.js';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'crash-'));
});
afterAll(() => rm(root, { recursive: true }));

const opening = `
  import { fileCalls } from '@millrace/store';
  const calls = fileCalls(process.argv[1], { leaseMs: 2000 });
`;

const read = async (directory: string): Promise<readonly StoredRecord[]> =>
  (await lastValueFrom(fileCalls(directory).read$('c').pipe(toArray()))).flat();

it('S6: a process that is killed while it writes has lost nothing that was confirmed, and its call is free', async () => {
  for (const batches of [0, 3, 17]) {
    const directory = await mkdtemp(join(root, 'store-'));
    const last = await killedAfter(opening, [directory], batches);
    const records = await read(directory);
    expect(records.length % 3).toBe(0);
    expect(records.length).toBeGreaterThanOrEqual(3 * (last + 1));
    expect(records.map(({ name }) => name)).toEqual(namesOfBatches(records.length));
    await firstValueFrom(fileCalls(directory).claim$('c'));
    expect(await read(directory)).toEqual(records);
  }
}, 180_000);

it('S7: a process that was suspended for longer than its lease writes nothing when it continues, and gets the reason', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const { child, ended } = startProcess(writing(opening), [directory], (line, suspended) => {
    if (line === '3') suspended.kill('SIGSTOP');
  });
  const claimed = new ReplaySubject<Claim>(1);
  const driver = fileCalls(directory, { leaseMs: 2_000 });
  await firstValueFrom(
    driver.read$('c').pipe(
      repeat(),
      skipWhile((it) => (it.at(-1)?.seq ?? 0) < 3),
    ),
  );
  // While it shows to be alive, it has the call.
  const held = driver.claim$('c').pipe(retry()).subscribe(claimed);
  const claim = await firstValueFrom(claimed);
  const record = { kind: 'step', name: 'mine', seq: 99, text: '1' } as const;
  await lastValueFrom(claim.append$([record]), { defaultValue: undefined });
  const before = await read(directory);
  child.kill('SIGCONT');
  const said = await ended;
  expect(said.at(-1)).toBe('conflict');
  expect(await read(directory)).toEqual(before);
  expect(before.map(({ name }) => name)).toEqual([...namesOfBatches(before.length - 1), 'mine']);
  expect(before.length).toBeGreaterThan(3 * Number(said.at(-2)));
  held.unsubscribe();
});

it('G2: processes that are killed while they append to branches and remove some have lost nothing that was confirmed', async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  await killWhileBranching(
    () => openFiles(directory).memory('s'),
    `import { openFiles } from '@millrace/store';
    const memory = openFiles(process.argv[1]).memory('s');`,
    [directory],
    [90, 140],
  );
});
