import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createCallStore, prune$ } from 'millrace/journal';
import { lastValueFrom, toArray } from 'rxjs';
import { storedName } from '../stored-name.js';
import { fileCalls } from './file-calls.js';
import { writeLine } from './line.js';
import { writeBatch } from './read-batches.js';
import { segmentPath } from './segments.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'list-'));
});
afterAll(() => rm(root, { recursive: true }));

const headOf = (callId: string): string =>
  writeLine('head', { format: 1, callId, after: 0, ends: [], at: 1 });

const stepAt = (position: number, at: number) =>
  ({ position, kind: 'step', name: 's', seq: 0, at, text: '1' }) as const;

/** Writes a call as one of some seconds ago. */
const written = async (directory: string, callId: string, second: number, text?: string) => {
  const path = join(directory, storedName(callId));
  await mkdir(path, { recursive: true });
  const records = writeBatch([stepAt(1, second * 1_000)]);
  await writeFile(segmentPath(path, 1), text ?? headOf(callId) + records);
  await utimes(segmentPath(path, 1), second, second);
  return path;
};

const idsIn = async (directory: string): Promise<readonly string[]> =>
  (await lastValueFrom(fileCalls(directory).list$().pipe(toArray())))
    .flat()
    .map(({ callId }) => callId);

describe('listCalls', () => {
  it('S6: reports each call once and in order', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    const ids = Array.from({ length: 150 }, (_, at) => `c${(at * 97) % 150}`);
    // Some were written to at the same time.
    for (const id of ids) await written(directory, id, 1_000 + Math.floor(Number(id.slice(1)) / 3));
    const all = await idsIn(directory);
    expect(all.toSorted()).toEqual(ids.toSorted());
    const seconds = all.map((id) => Math.floor(Number(id.slice(1)) / 3));
    expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
  });

  const broken: readonly (readonly [string, (directory: string) => Promise<unknown>])[] = [
    ['a damaged head', (it) => written(it, 'c', 9, `x\n${writeBatch([stepAt(1, 1)])}`)],
    [
      'a damaged record',
      (it) => written(it, 'c', 9, `${headOf('c')}x\n${writeBatch([stepAt(1, 1)])}`),
    ],
    ['a later format', (it) => written(it, 'c', 9, writeLine('head', { format: 2 }))],
    ['a directory for a file', async (it) => mkdir(segmentPath(await written(it, 'c', 9), 2))],
    [
      'a file for its lock',
      async (it) => {
        await written(it, 'c', 9, 'x');
        await writeFile(join(it, `${storedName('other')}.lock`), '');
      },
    ],
  ];
  it.each(broken)(
    'S6: shows a call that has %s among the others, and it can be removed',
    async (_, harm) => {
      const directory = await mkdtemp(join(root, 'store-'));
      await written(directory, 'other', 5);
      await harm(directory);
      const listed = await idsIn(directory);
      expect(listed).toContain('other');
      await lastValueFrom(fileCalls(directory).remove$('c'), { defaultValue: undefined });
      expect(await idsIn(directory)).toEqual(['other']);
      expect((await readdir(directory)).filter((name) => name.startsWith(storedName('c')))).toEqual(
        [],
      );
      expect(await readdir(join(directory, '.aside'))).toEqual([]);
    },
  );

  it('S6: lets damaged calls be pruned', async () => {
    const directory = await mkdtemp(join(root, 'store-'));
    await written(directory, 'c', 9, `x\n${writeBatch([stepAt(1, 1)])}`);
    const store = createCallStore(fileCalls(directory));
    const pruned$ = prune$(store, { olderThanMs: 0, status: ['unreadable'] });
    const pruned = await lastValueFrom(pruned$.pipe(toArray()));
    expect(pruned.map(({ callId, status }) => [callId, status])).toEqual([['c', 'unreadable']]);
    expect(await idsIn(directory)).toEqual([]);
  });
});

describe('a long call', () => {
  const msFor = async (count: number): Promise<number> => {
    const directory = await mkdtemp(join(root, 'store-'));
    const records = Array.from({ length: count }, (_, at) => stepAt(at + 1, 1));
    // One batch, of which all have to be read before one counts.
    await written(directory, 'c', 9, headOf('c') + writeBatch(records));
    const times: number[] = [];
    for (let tries = 0; tries < 2; tries += 1) {
      const begun = process.cpuUsage().user / 1_000;
      const read = await lastValueFrom(fileCalls(directory).read$('c').pipe(toArray()));
      times.push(process.cpuUsage().user / 1_000 - begun);
      expect(read.flat()).toHaveLength(count);
    }
    return Math.min(...times);
  };

  it('X6: is read in time that grows with its length, also if it is a batch of more records than a function has arguments', async () => {
    const few = await msFor(20_000);
    expect(await msFor(160_000)).toBeLessThan(40 * few);
  });
});
