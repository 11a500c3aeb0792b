import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { MemoryFactory } from '@millrace/core';
import { journalContract, memoryContract } from '@millrace/core/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import type { Store } from '../store.js';
import { openEmbedded } from './open-embedded.js';

let directory: string;
let store: Store;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'embedded-'));
  store = openEmbedded(directory, { onProgress: () => undefined });
  await lastValueFrom(store.calls.list$(), { defaultValue: [] });
}, 60_000);
afterAll(async () => {
  await lastValueFrom(store.close$());
  await rm(directory, { recursive: true });
});

const empty = async (): Promise<void> => {
  const calls = await lastValueFrom(store.calls.list$().pipe(toArray()));
  for (const { callId } of calls.flat()) await lastValueFrom(store.calls.remove$(callId));
};

describe('openEmbedded: calls', () => {
  const contract = journalContract(async () => {
    await empty();
    return { first: store.calls };
  });
  for (const { name, run } of contract) it(`S6: ${name}`, run);
});

describe('openEmbedded: memory', () => {
  // One database for all, as it takes long to make one: each has sessions of its own.
  let made = 0;
  const newMemory = (): MemoryFactory => {
    const own = `${(made += 1)}: `;
    return (sessionId) => store.memory(own + sessionId);
  };
  for (const { name, run } of memoryContract(newMemory)) it(`G2: ${name}`, run);
  const shared = sharedMemoryContract(() => {
    const memory = newMemory();
    return Promise.resolve([memory, memory]);
  });
  for (const { name, run } of shared) it(`G2: ${name}`, run);
});
