import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { journalContract } from '@millrace/core/testing';
import { lastValueFrom, toArray } from 'rxjs';
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
