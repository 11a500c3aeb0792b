import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { memoryContract } from 'millrace/testing';
import { fileMemory } from './file-memory.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'memory-'));
});
afterAll(() => rm(root, { recursive: true }));

let used = 0;
const create = () => {
  used += 1;
  return fileMemory(join(root, String(used)));
};

describe('fileMemory', () => {
  for (const { name, run } of memoryContract(create)) it(`G2: ${name}`, run);
});
