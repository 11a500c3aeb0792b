import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CallStoreDriver, Claim, NewRecord } from 'millrace/journal';
import { createAgent, inProcessMemory } from 'millrace';
import { createCallStore, journal } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { asyncScheduler, firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import type * as writers from './append-records.js';
import { loadPlayed, type PlayedProcess, playProcess } from './file-operations.test-support.js';
import type * as segments from './open-segment.js';

let root: string;
let fileCalls: (directory: string) => CallStoreDriver;
let openSegment: typeof segments.openSegment;
let recordWriter: typeof writers.recordWriter;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'new-call-'));
  ({ fileCalls } = await loadPlayed(() => import('./file-calls.js')));
  ({ openSegment } = await import('./open-segment.js'));
  ({ recordWriter } = await import('./append-records.js'));
});
afterAll(() => rm(root, { recursive: true }));

const begins = (callId: string): NewRecord => {
  const text = JSON.stringify({ version: 1, keySeed: '/1', agent: 'a', sessionId: callId });
  return { kind: 'step', name: `${callId}/call`, seq: 0, text };
};
const event: NewRecord = { kind: 'event', name: 'preCall', seq: 1, text: '{}' };
const step: NewRecord = { kind: 'step', name: 'step', seq: 1, text: '1' };

const read = async (driver: CallStoreDriver, callId: string): Promise<readonly string[]> =>
  (await lastValueFrom(driver.read$(callId).pipe(toArray()))).flat().map(({ name }) => name);

const claim = async (driver: CallStoreDriver, callId: string) => {
  const claim$ = new ReplaySubject<Claim>(1);
  const held = driver.claim$(callId).subscribe(claim$);
  const { append$ } = await firstValueFrom(claim$);
  const append = (record: NewRecord) =>
    lastValueFrom(append$([record]), { defaultValue: undefined });
  return { append, leave: () => held.unsubscribe() };
};

/** The operations that another thread does, which cost far more than the others. */
const threadsIn = (operations: readonly string[]): readonly string[] =>
  operations.filter((it) => !/^\w+Sync /.test(it)).map((it) => it.replace(/ \/.*/, ''));

describe('a new call, in files', () => {
  it('S6: costs few operations until its first step is stored, and is not read', async () => {
    const driver = fileCalls(join(root, 'few'));
    const first = await claim(driver, 'first');
    await first.append(begins('first'));
    const parts: (readonly string[])[] = [];
    const played: PlayedProcess = { operations: [] };
    const part = async <T>(work: Promise<T>): Promise<T> => {
      const value = await work;
      parts.push(threadsIn(played.operations.splice(0)));
      return value;
    };
    await playProcess(played, async () => {
      expect(await part(read(driver, 'c'))).toEqual([]);
      const { append, leave } = await part(claim(driver, 'c'));
      expect(await part(read(driver, 'c'))).toEqual([]);
      await part(append(begins('c')));
      await part(append(event));
      await part(append(step));
      leave();
    });
    first.leave();
    const [unknown, claimed, empty, begun, ...later] = parts;
    expect({ unknown, empty }).toEqual({ unknown: [], empty: [] });
    // The lock, the directory, the file with its head, and the entry.
    expect(claimed).toEqual([
      ...['mkdir', 'writeFile', 'rename'],
      ...['mkdir', 'open ax', 'append', 'writeFile'],
    ]);
    // An entry of the session, three directories, then the record with two directories.
    expect(begun?.toSorted()).toEqual([
      ...['append', 'datasync', 'mkdir', 'sync', 'sync', 'sync', 'sync', 'sync', 'writeFile'],
    ]);
    expect(later).toEqual([['append'], ['append', 'datasync']]);
  });

  it('S7: is read as soon as it has a record, of this writer or of another one', async () => {
    const directory = join(root, 'read');
    const [driver, other] = [fileCalls(directory), fileCalls(directory)];
    const { append, leave } = await claim(driver, 'c');
    expect(await read(driver, 'c')).toEqual([]);
    await append(step);
    expect(await read(driver, 'c')).toEqual(['step']);
    leave();
    const empty = await claim(driver, 'd');
    // Another process has taken over.
    const path = join(directory, 'i-d');
    const taken = await openSegment(path, 'd', 0);
    if (taken === undefined) throw new Error('There is no segment.');
    const entry = { before: () => Promise.resolve([]), after: () => Promise.resolve() };
    const writer = recordWriter(path, taken, { scheduler: asyncScheduler, entry });
    await writer.append([step]);
    expect(await read(driver, 'd')).toEqual(['step']);
    expect(await read(other, 'd')).toEqual(['step']);
    writer.close();
    empty.leave();
  });

  it('S6: ends in its index once, after its last event, and waits for the disk once for that', async () => {
    const driver = fileCalls(join(root, 'end'));
    const agent = createAgent({
      model: scriptedModel([text('One.')], [text('Two.')]),
      use: [journal(createCallStore(driver))],
    });
    const session = sessions(agent, { memory: inProcessMemory() }).open('s');
    await session.call('First?', { callId: 'first' });
    const played: PlayedProcess = { operations: [] };
    await playProcess(played, () => session.call('Second?', { callId: 'second' }));
    const inIndex = (name: string): readonly string[] =>
      played.operations.filter((it) => it.includes(`/${name}/`)).map((it) => it.replace(/ .*/, ''));
    expect({ unfinished: inIndex('.unfinished'), ended: inIndex('.ended') }).toEqual({
      unfinished: ['writeFile', 'existsSync', 'unlink'],
      ended: ['statSync', 'readdir', 'writeFile', 'sync'],
    });
    const own = threadsIn(played.operations).filter((it) => /^(?:append|datasync)$/.test(it));
    // The head, four steps and four times events, and the last of these with the index.
    expect(own.filter((it) => it === 'append')).toHaveLength(9);
    expect(own.filter((it) => it === 'datasync')).toHaveLength(5);
  });
});
