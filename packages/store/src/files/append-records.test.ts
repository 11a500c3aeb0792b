import { type FileHandle, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { asyncScheduler, VirtualTimeScheduler } from 'rxjs';
import { recordWriter } from './append-records.js';
import { toStoreError } from './file-system.js';
import { laterSegmentsOn } from './later-segments.js';
import { writeLine } from './line.js';
import { openSegment } from './open-segment.js';
import { beginning, readCall } from './read-call.js';
import { segmentPath } from './segments.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'append-'));
});
afterAll(() => rm(root, { recursive: true }));

/** The directory of a call 'c'. */
const create = async (): Promise<string> => {
  const directory = join(await mkdtemp(join(root, 'store-')), 'i-c');
  await mkdir(directory);
  return directory;
};

const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

const noEntry = { before: () => Promise.resolve([]), after: () => Promise.resolve() };

const record = (name: string) => ({ kind: 'step', name, seq: 0, text: '"text"' }) as const;

it('S6: an append that the disk has no room for leaves nothing, and does not harm the next', async () => {
  const directory = await create();
  const segment = await openSegment(directory, 'c', 0);
  if (segment === undefined) throw new Error('There is no segment.');
  const disk = { isFull: false };
  const file = new Proxy(segment.file, {
    get: (target, property: keyof FileHandle) => {
      if (property === 'appendFile' && disk.isFull) {
        return async (bytes: Buffer) => {
          await target.appendFile(bytes.subarray(0, bytes.length - 20));
          throw full;
        };
      }
      const value: unknown = target[property];
      const bound: unknown = typeof value === 'function' ? value.bind(target) : value;
      return bound;
    },
  });
  const laterSegments = laterSegmentsOn(asyncScheduler);
  const { append, close } = recordWriter(
    directory,
    { ...segment, file },
    {
      scheduler: asyncScheduler,
      entry: noEntry,
    },
  );
  const names = async (): Promise<readonly string[]> => {
    const read: string[] = [];
    for await (const { records } of readCall(directory, beginning, laterSegments)) {
      read.push(...records.map(({ name }) => name));
    }
    return read;
  };
  await append([record('a')]);
  disk.isFull = true;
  await expect(append([record('b'), record('c')])).rejects.toBe(full);
  expect(await names()).toEqual(['a']);
  disk.isFull = false;
  await append([record('d')]);
  expect(await names()).toEqual(['a', 'd']);
  close();
});

it('S7: records count that the next writer sees, even if its head takes long', async () => {
  const call = await create();
  const segment = await openSegment(call, 'c', 0);
  if (segment === undefined) throw new Error('There is no segment.');
  const next = segmentPath(call, 2);
  const appendFile: FileHandle['appendFile'] = async (bytes) => {
    await segment.file.appendFile(bytes);
    await writeFile(next, '');
  };
  const file = new Proxy(segment.file, {
    get: (target, property: keyof FileHandle) => {
      const value: unknown = property === 'appendFile' ? appendFile : target[property];
      const bound: unknown = typeof value === 'function' ? value.bind(target) : value;
      return bound;
    },
  });
  const scheduler = new VirtualTimeScheduler();
  const { append, close } = recordWriter(call, { ...segment, file }, { scheduler, entry: noEntry });
  const written = append([record('a')]);
  const isPending = async () =>
    (await Promise.race([written, setImmediate('pending')])) === 'pending';
  while (scheduler.frame < 5_000 && (await isPending())) scheduler.flush();
  const { size } = await stat(segmentPath(call, 1));
  const head = { format: 1, callId: 'c', after: 1, ends: [[1, size]], at: 0 };
  await writeFile(next, writeLine('head', head));
  while (await isPending()) scheduler.flush();
  expect(await written).toBe(true);
  close();
});

it('C7: says of a full disk what to do, and that it may be tried again', () => {
  expect(toStoreError('/data')(full)).toMatchObject({
    code: 'store',
    retryable: true,
    message: 'The store in /data failed: the disk is full. Free some space, then retry.',
  });
});
