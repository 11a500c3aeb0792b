import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { interval, takeUntil, timer } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openEmbedded } from '../embedded/open-embedded.js';
import type { DatabaseStore } from '../store.js';
import { documentIndex } from './document-index.js';
import { all, documentOf, last } from './documents.test-support.js';

jest.setTimeout(240_000);

let directory: string;
let store: DatabaseStore;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'faults-'));
  store = openEmbedded(directory, { onProgress: () => undefined });
});
afterAll(async () => {
  await closeStore(store);
  await rm(directory, { recursive: true });
});

describe('documentIndex', () => {
  it('lets timers of the process run while it adds documents that are in memory', async () => {
    const index = documentIndex(store, { name: 'turns' });
    const documents = Array.from({ length: 2_000 }, (_, at) =>
      documentOf(`${at}.md`, `Gate ${at}.`),
    );
    await last(index.sources$());
    const added = await all(index.add$(documents).pipe(takeUntil(timer(50))));
    expect(added.length).toBeLessThan(documents.length);
    const ticks: unknown[] = [];
    const ticking = interval(1).subscribe((tick) => void ticks.push(tick));
    await all(index.add$(documents.slice(0, 200)));
    ticking.unsubscribe();
    expect(ticks.length).toBeGreaterThan(2);
  });
});
