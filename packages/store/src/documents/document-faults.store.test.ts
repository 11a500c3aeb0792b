import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { interval, takeUntil, throwError, timer } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openSqlite } from '../sqlite/open-sqlite.js';
import type { DatabaseStore } from '../store.js';
import { documentIndex } from './document-index.js';
import type { IndexDocument } from './document-rows.js';
import { all, documentOf, last, letterVector, notingEmbedder } from './documents.test-support.js';

jest.setTimeout(240_000);

let directory: string;
let store: DatabaseStore;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'faults-'));
  store = openSqlite(join(directory, 'millrace.db'));
});
afterAll(async () => {
  await closeStore(store);
  await rm(directory, { recursive: true });
});

const mill = documentOf('mill.md', 'A gate closes the race.');

describe('documentIndex', () => {
  it('is not bound to an embedder that never returned a vector', async () => {
    const name = 'misspelt';
    const broken = { id: 'smal', embed$: () => throwError(() => new Error('No such model.')) };
    await expect(
      all(documentIndex(store, { name, embedder: broken }).add$([mill])),
    ).rejects.toThrow('No such model.');
    expect(await last(documentIndex(store, { name }).retrieve$({ text: 'gate' }))).toEqual([]);
    await all(documentIndex(store, { name }).add$([mill]));
    const good = documentIndex(store, { name, embedder: notingEmbedder(letterVector, 'small') });
    expect(await last(good.add$([mill]))).toMatchObject({ indexed: 1 });
    const late = documentIndex(store, { name, embedder: notingEmbedder(letterVector, 'smal') });
    await expect(all(late.add$([mill]))).rejects.toMatchObject({ code: 'config' });
  });

  it('is bound to the embedder that is first to return a vector', async () => {
    const name = 'race';
    const other = documentIndex(store, { name, embedder: notingEmbedder(letterVector, 'other') });
    const notes = notingEmbedder(letterVector, 'slow');
    const slow = documentIndex(store, { name, embedder: notes });
    async function* documents(): AsyncGenerator<IndexDocument> {
      await all(other.add$([mill]));
      yield documentOf('late.md', 'A wheel.');
    }
    await expect(all(slow.add$(documents()))).rejects.toMatchObject({ code: 'config' });
    expect(await last(other.sources$())).toEqual(['mill.md']);
  });

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

  it('names what is wrong with an option, a chunk and a removal', async () => {
    expect(() => documentIndex(store, { threshold: 30 })).toThrow('must be from 0 to 1');
    const index = documentIndex(store, { name: 'shapes' });
    const chunks = JSON.parse('[{ "from": 0, "to": 1, "title": 5 }]');
    await expect(all(index.add$([{ ...mill, chunks }]))).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringContaining('title?, source?'),
    });
    await all(index.add$([mill]));
    await expect(last(index.remove$(JSON.parse('[5]')))).rejects.toMatchObject({ code: 'config' });
  });
});
