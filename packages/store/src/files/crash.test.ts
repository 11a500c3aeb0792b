import { spawn } from 'node:child_process';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { StoredRecord } from '@millrace/core/journal';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { fileCalls } from './file-calls.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(60_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'crash-'));
});
afterAll(() => rm(root, { recursive: true }));

/** Writes batches of three until it is killed, and says behind each that it is written. */
const writer = `
  import { fileCalls } from '@millrace/store';
  import { lastValueFrom } from 'rxjs';
  fileCalls(process.argv[1], { leaseMs: 2000 }).claim$('c').subscribe(async (claim) => {
    for (let at = 0; ; at += 1) {
      const records = ['a', 'b', 'c'].map((part) => ({
        kind: 'step', name: at + part, seq: at, text: JSON.stringify('x'.repeat(10_000)),
      }));
      await lastValueFrom(claim.append$(records), { defaultValue: undefined });
      process.stdout.write(at + '\\n');
    }
  });
`;

const killedAfter = (directory: string, batches: number): Promise<number> =>
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

const read = async (directory: string): Promise<readonly StoredRecord[]> =>
  (await lastValueFrom(fileCalls(directory).read$('c').pipe(toArray()))).flat();

it('S6: a process that is killed while it writes has lost nothing that it was told is written', async () => {
  for (const batches of [0, 3, 17]) {
    const directory = await mkdtemp(join(root, 'store-'));
    const last = await killedAfter(directory, batches);
    const records = await read(directory);
    expect(records.length % 3).toBe(0);
    expect(records.length).toBeGreaterThanOrEqual(3 * (last + 1));
    expect(records.map(({ name }) => name)).toEqual(
      records.map((_, at) => `${Math.floor(at / 3)}${'abc'[at % 3] ?? ''}`),
    );
    // As when its lease has run out.
    await utimes(join(directory, `${storedName('c')}.lock`), 0, 0);
    const driver = fileCalls(directory);
    await firstValueFrom(driver.claim$('c'));
    expect(await read(directory)).toEqual(records);
  }
}, 30_000);
