import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Message } from 'millrace';
import { memoryContract } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import { checkTrees } from '../memory/memory-trees.test-support.js';
import { storedName } from '../stored-name.js';
import { fileMemory } from './file-memory.js';
import { writeLine } from './line.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let made = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'conversations-'));
});
afterAll(() => rm(root, { recursive: true }));

const newDirectory = (): string => join(root, `store-${(made += 1)}`);

const said = (id: string): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: `I am ${id}.` }],
});

describe('fileMemory', () => {
  for (const { name, run } of memoryContract(() => fileMemory(newDirectory()))) {
    it(`G2: ${name}`, run);
  }
  const shared = sharedMemoryContract(() => {
    const directory = newDirectory();
    return Promise.resolve([fileMemory(directory), fileMemory(directory)]);
  });
  for (const { name, run } of shared) it(`G2: ${name}`, run);

  it('G2: has the trees that the pure functions make', () =>
    checkTrees(() => {
      const directory = newDirectory();
      return Promise.resolve([fileMemory(directory), fileMemory(directory)]);
    }, 400));

  it('G2: stores a conversation without branches as before there were any, and reads it', async () => {
    const directory = newDirectory();
    const memory = fileMemory(directory)('s');
    for (const ids of [['a', 'b'], ['c']]) {
      await lastValueFrom(memory.append$(ids.map(said)));
    }
    const linesOf = async (number: number): Promise<readonly unknown[]> => {
      const path = join(directory, storedName('s'), `00000${number}.jsonl`);
      const lines = (await readFile(path, 'utf8')).trim().split('\n');
      return lines.map((line) => ({ ...(JSON.parse(line) as object), crc32: '' }));
    };
    const record = (id: string, place: object = {}) => ({
      crc32: '',
      record: { id, ...place, text: JSON.stringify(said(id)) },
    });
    const head = (more: object = {}) => ({ crc32: '', head: { format: 1, ...more } });
    expect(await linesOf(1)).toEqual([head(), record('a'), record('b')]);
    expect(await linesOf(2)).toEqual([head(), record('c')]);
    await lastValueFrom(memory.append$([said('d'), said('e')], { after: 'b' }));
    await lastValueFrom(memory.append$([said('f')]));
    await lastValueFrom(memory.moveHead$('e'));
    expect(await linesOf(3)).toEqual([
      head({ head: 'c' }),
      record('d', { after: 'b' }),
      record('e'),
    ]);
    expect(await linesOf(4)).toEqual([head(), record('f', { after: 'c' })]);
    expect(await linesOf(5)).toEqual([head({ head: 'e' })]);
    expect(await lastValueFrom(fileMemory(directory)('s').load$())).toEqual(
      ['a', 'b', 'd', 'e'].map(said),
    );
  });

  it('G2: leaves nothing of a branch on the disk that was removed', async () => {
    const directory = newDirectory();
    const memory = fileMemory(directory)('s');
    await lastValueFrom(memory.append$(['a', 'secret', 'b'].map(said)));
    await lastValueFrom(memory.append$([said('c')], { after: 'a' }));
    await lastValueFrom(memory.remove$('secret'));
    const own = join(directory, storedName('s'));
    expect(await readdir(own)).toEqual(['000064.jsonl']);
    expect(await readFile(join(own, '000064.jsonl'), 'utf8')).not.toContain('secret');
    await lastValueFrom(memory.append$([said('d')]));
    expect(await lastValueFrom(fileMemory(directory)('s').load$())).toEqual(
      ['a', 'c', 'd'].map(said),
    );
  });

  it.each([
    ['head', { head: { format: 1, head: 'none' } }],
    ['removed', { head: { format: 1, removed: 'none' } }],
  ])('G2: names the file that names a missing message: %s', async (_name, { head }) => {
    const directory = newDirectory();
    const memory = fileMemory(directory)('s');
    await lastValueFrom(memory.append$([said('a')]));
    const path = join(directory, storedName('s'), '000002.jsonl');
    await writeFile(path, writeLine('head', head));
    const wrong = { code: 'invalidState', message: expect.stringContaining(path) };
    await expect(lastValueFrom(memory.load$())).rejects.toMatchObject(wrong);
    const after = { id: 'b', after: 'none', text: JSON.stringify(said('b')) };
    await writeFile(path, writeLine('head', { format: 1 }) + writeLine('record', after));
    await expect(lastValueFrom(memory.load$())).rejects.toMatchObject(wrong);
  });

  it('G2: reads what a crash left between the removal of a branch and the snapshot after it', async () => {
    const directory = newDirectory();
    const memory = fileMemory(directory)('s');
    await lastValueFrom(memory.append$(['a', 'b'].map(said)));
    const own = join(directory, storedName('s'));
    await writeFile(join(own, '000002.jsonl'), writeLine('head', { format: 1, removed: 'b' }));
    for (const it of [memory, fileMemory(directory)('s')]) {
      expect(await lastValueFrom(it.load$())).toEqual([said('a')]);
    }
    await lastValueFrom(memory.append$([said('c')]));
    expect(await readdir(own)).toEqual(['000064.jsonl']);
    expect(await lastValueFrom(fileMemory(directory)('s').load$())).toEqual(['a', 'c'].map(said));
  });

  it('G2: reports a damaged conversation', async () => {
    const directory = newDirectory();
    const memory = fileMemory(directory)('s');
    const content = [{ type: 'text', text: 'Hello.' }] as const;
    await lastValueFrom(memory.append$([{ id: 'a', role: 'user', content }]), { defaultValue: 0 });
    const path = join(directory, storedName('s'), '000001.jsonl');
    expect(await readdir(join(directory, storedName('s')))).toEqual(['000001.jsonl']);
    await writeFile(path, (await readFile(path, 'utf8')).replace('Hello', 'Bye'));
    await expect(lastValueFrom(fileMemory(directory)('s').load$())).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining(path),
    });
  });

  it('X17: refuses what is no session', () => {
    expect(() => fileMemory(root)('')).toThrow('needs an id');
  });
});
