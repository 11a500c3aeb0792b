import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { memoryContract } from '@millrace/core/testing';
import { lastValueFrom } from 'rxjs';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import { storedName } from '../stored-name.js';
import { fileMemory } from './file-memory.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let made = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'conversations-'));
});
afterAll(() => rm(root, { recursive: true }));

const newDirectory = (): string => join(root, `store-${(made += 1)}`);

describe('fileMemory', () => {
  for (const { name, run } of memoryContract(() => fileMemory(newDirectory()))) {
    it(`G2: ${name}`, run);
  }
  const shared = sharedMemoryContract(() => {
    const directory = newDirectory();
    return Promise.resolve([fileMemory(directory), fileMemory(directory)]);
  });
  for (const { name, run } of shared) it(`G2: ${name}`, run);

  it('G2: says where a conversation is damaged', async () => {
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
