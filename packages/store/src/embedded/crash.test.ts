import { spawn } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import type { DatabaseStore } from '../store.js';
import { openEmbedded } from './open-embedded.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(60_000);

let directory: string;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crash-'));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => lastValueFrom(store.close$())));
  await rm(directory, { recursive: true });
});

const leaseMs = 2_000;

/** Writes batches of three until it is killed, and says behind each that it is written. */
const writer = `
  import { openEmbedded } from '@millrace/store/embedded';
  import { lastValueFrom } from 'rxjs';
  const { calls } = openEmbedded(process.argv[1], { leaseMs: ${leaseMs}, onProgress: () => {} });
  calls.driver.claim$('c').subscribe(async (claim) => {
    for (let at = 0; ; at += 1) {
      const records = ['a', 'b', 'c'].map((part) => ({
        kind: 'step', name: at + part, seq: at, text: JSON.stringify('x'.repeat(10_000)),
      }));
      await lastValueFrom(claim.append$(records), { defaultValue: undefined });
      process.stdout.write(at + '\\n');
    }
  });
`;

const killedAfter = (batches: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', writer, directory], {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.once('error', reject);
    const said = { last: -1 };
    createInterface(child.stdout)
      .on('line', (line) => {
        said.last = Number(line);
        if (said.last === batches) child.kill('SIGKILL');
      })
      .once('close', () => resolve(said.last));
  });

it('S6: an embedded database whose process is killed has lost nothing that was told is written, and is taken over when its lease has run out', async () => {
  for (const batches of [4, 15]) {
    const lock = join(directory, 'database.lock');
    const last = await killedAfter(batches);
    const { ctimeMs: lastSign } = await stat(lock);
    const store = openEmbedded(directory, { leaseMs });
    stores.push(store);
    const records = (await lastValueFrom(store.calls.driver.read$('c').pipe(toArray()))).flat();
    const { birthtimeMs: takenAt } = await stat(lock);
    expect(takenAt - lastSign).toBeGreaterThan(leaseMs - 100);
    expect(takenAt - lastSign).toBeLessThan(leaseMs + 5_000);
    expect(records.length % 3).toBe(0);
    expect(records.length).toBeGreaterThanOrEqual(3 * (last + 1));
    expect(records.map(({ position }) => position)).toEqual(records.map((_, at) => at + 1));
    expect(records.map(({ name }) => name)).toEqual(
      records.map((_, at) => `${Math.floor(at / 3)}${'abc'[at % 3] ?? ''}`),
    );
    // Its lease of the call is gone with it.
    await firstValueFrom(store.calls.driver.claim$('c'));
    await lastValueFrom(store.calls.driver.remove$('c'));
    await lastValueFrom(store.close$());
  }
}, 60_000);
