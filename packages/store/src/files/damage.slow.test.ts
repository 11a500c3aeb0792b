import {
  appendFile,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CallStoreDriver, NewRecord, StoredRecord } from 'millrace/journal';
import fc from 'fast-check';
import { firstValueFrom, lastValueFrom, tap, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { fileCalls } from './file-calls.js';
import { writeLine } from './line.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'damage-'));
});
afterAll(() => rm(root, { recursive: true }));

const step = (name: string): NewRecord => ({ kind: 'step', name, seq: 0, text: '"é🍵"' });

const append = (driver: CallStoreDriver, ...batches: readonly (readonly NewRecord[])[]) =>
  appendTo('c', driver, ...batches);

const appendTo = (
  callId: string,
  driver: CallStoreDriver,
  ...batches: readonly (readonly NewRecord[])[]
) =>
  new Promise<void>((resolve, reject) => {
    const held = driver.claim$(callId).subscribe({
      next: (claim) => {
        const written = batches.reduce<Promise<unknown>>(
          (before, batch) =>
            before.then(() => lastValueFrom(claim.append$(batch), { defaultValue: 0 })),
          Promise.resolve(),
        );
        written.then(() => {
          held.unsubscribe();
          resolve();
        }, reject);
      },
      error: reject,
    });
  });

const read = async (driver: CallStoreDriver): Promise<readonly string[]> => {
  const records: StoredRecord[] = [];
  await lastValueFrom(driver.read$('c').pipe(tap((some) => records.push(...some))), {
    defaultValue: 0,
  });
  expect(records.map(({ position }) => position)).toEqual(records.map((_, index) => index + 1));
  return records.map(({ name }) => name);
};

const create = async () => {
  const directory = await mkdtemp(join(root, 'store-'));
  const segment = (number: number): string =>
    join(directory, storedName('c'), `00000${number}.jsonl`);
  return { directory, driver: fileCalls(directory), segment };
};

describe('a torn end', () => {
  const garbage = fc.oneof(
    fc.constant(Buffer.alloc(0)),
    fc.constant(Buffer.alloc(700)),
    fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
    fc.constant(Buffer.from('{"crc32":"00000000","record":{}}\n')),
  );

  it('S6: costs what was not whole, wherever it is cut and with anything after it', async () => {
    const { driver, segment } = await create();
    await append(driver, [step('a')], [step('b'), step('c'), step('d')], [step('e')]);
    const whole = await readFile(segment(1));
    const lines = whole.toString('utf8').split('\n');
    const ends = lines.map((_, at) => Buffer.byteLength(lines.slice(0, at + 1).join('\n')) + 1);
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: whole.length }), garbage, async (cut, rest) => {
        const torn = await create();
        await append(torn.driver, [step('cut')]);
        await writeFile(torn.segment(1), Buffer.concat([whole.subarray(0, cut), rest]));
        // Not one that somebody is beginning just now.
        await utimes(torn.segment(1), 0, 0);
        // Behind the head a, b to d, and e: the end of a line may be what was cut.
        const count = ends.slice(0, 6).filter((end) => end <= cut).length - 1;
        const left = ['a', 'b', 'c', 'd', 'e'].slice(0, [0, 1, 1, 1, 4, 5][Math.max(0, count)]);
        const shown = await read(torn.driver);
        // Garbage that begins with the end of a line may complete it.
        if (rest[0] !== 0x0a) expect(shown).toEqual(left);
        await append(torn.driver, [step('next')]);
        expect(await read(torn.driver)).toEqual([...shown, 'next']);
        expect(await read(fileCalls(torn.directory))).toEqual([...shown, 'next']);
      }),
      { numRuns: 40 },
    );
  });

  it('S6: of a segment that was only begun is passed over', async () => {
    const { driver, directory, segment } = await create();
    await append(driver, [step('a')]);
    await writeFile(segment(2), '{"crc32":"');
    await append(driver, [step('b')]);
    await writeFile(segment(4), '');
    expect(await read(fileCalls(directory))).toEqual(['a', 'b']);
    expect((await readdir(join(directory, storedName('c')))).length).toBe(4);
  });
});

describe('damage', () => {
  const damages: readonly (readonly [string, (lines: readonly string[]) => readonly string[]])[] = [
    [
      'a line that was changed',
      ([head = '', a = '', b = '', ...more]) => [head, a, b.replace('"b"', '"x"'), ...more],
    ],
    ['a line that is foreign', ([head = '', a = '', ...more]) => [head, a, 'hello', ...more]],
    ['a line that is gone', ([head = '', a = '', _, ...more]) => [head, a, ...more]],
    ['a line that is there twice', ([head = '', a = '', ...more]) => [head, a, a, ...more]],
  ];
  for (const [what, damage] of damages) {
    it(`S6: ${what} is reported with its place, after what stands before it`, async () => {
      const { driver, directory, segment } = await create();
      await append(driver, [step('a')], [step('b')], [step('c')]);
      const lines = (await readFile(segment(1), 'utf8')).split('\n');
      await writeFile(segment(1), damage(lines).join('\n'));
      const seen: string[] = [];
      const reading = lastValueFrom(
        fileCalls(directory)
          .read$('c')
          .pipe(tap((records) => seen.push(...records.map(({ name }) => name)))),
      );
      await expect(reading).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(`Line 3 of ${segment(1)}`),
      });
      expect(seen).toEqual(['a']);
      await expect(append(driver, [step('d')])).rejects.toMatchObject({ code: 'invalidState' });
    });
  }

  it('S6: costs other calls nothing, and can be cut out', async () => {
    const { driver, segment } = await create();
    await append(driver, [step('a')], [step('b')]);
    const { size } = await stat(segment(1));
    await append(driver, [step('c')]);
    await truncate(segment(1), size - 10);
    await expect(read(driver)).rejects.toMatchObject({ code: 'invalidState' });
    await rm(segment(2));
    expect(await read(driver)).toEqual(['a']);
  });

  it.each<[string, string]>([
    ['damaged', 'x\n'],
    ['of a later format', writeLine('head', { format: 2 })],
  ])('S6: a call whose head is %s is listed, as all others are', async (_name, head) => {
    const { directory, driver, segment } = await create();
    await append(driver, [step('a')]);
    const record = (await readFile(segment(1), 'utf8')).split('\n').slice(1).join('\n');
    await writeFile(segment(1), head + record);
    await appendTo('other', driver, [step('a')]);
    const calls = (await lastValueFrom(driver.list$().pipe(toArray()))).flat();
    expect(calls.map(({ callId }) => callId).toSorted()).toEqual(['c', 'other']);
    await expect(read(fileCalls(directory))).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining(segment(1)),
    });
  });

  it('S6: a segment that is gone is reported', async () => {
    const { driver, segment } = await create();
    for (const name of ['a', 'b', 'c']) await append(driver, [step(name)]);
    await rm(segment(2));
    await expect(read(fileCalls(join(segment(1), '../..')))).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining('record 2'),
    });
  });
});

describe('fileCalls', () => {
  it('X17: writes nowhere but in its directory, and for this user alone', async () => {
    const { directory } = await create();
    const inner = join(directory, 'a', 'calls');
    const driver = fileCalls(inner);
    for (const callId of ['../../x', '/etc/x', 'a\u0000b', '__proto__', 'x'.repeat(10_000)]) {
      await firstValueFrom(driver.claim$(callId));
    }
    expect(await readdir(directory)).toEqual(['a']);
    expect(await readdir(join(directory, 'a'))).toEqual(['calls']);
    for (const name of await readdir(inner)) {
      expect(name).toMatch(/^[a-z0-9_.-]{1,145}$/);
      if (name === '.millrace-store') {
        expect((await stat(join(inner, name))).mode & 0o777).toBe(0o600);
      } else if (!/\.lock$|^\./.test(name)) {
        expect((await stat(join(inner, name))).mode & 0o777).toBe(0o700);
        expect((await stat(join(inner, name, '000001.jsonl'))).mode & 0o777).toBe(0o600);
      }
    }
  });

  it('C7: says what is wrong with a directory, and what to do', async () => {
    const { directory } = await create();
    await appendFile(join(directory, 'file'), '');
    for (const path of ['file', 'file/calls']) {
      await expect(append(fileCalls(join(directory, path)), [step('a')])).rejects.toMatchObject({
        code: 'store',
        retryable: false,
        message: expect.stringContaining('Choose'),
      });
    }
  });

  it('C7: refuses options that cannot be', () => {
    expect(() => fileCalls('.', { leaseMs: 100 })).toThrow("'leaseMs' must be a whole number");
  });
});
