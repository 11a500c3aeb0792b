import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { documentIndex } from '../documents/document-index.js';
import { all, last } from '../documents/documents.test-support.js';
import { openPostgres } from '../postgres/open-postgres.js';
import type { DatabaseStore } from '../store.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
let server: TestServer;
let stores: readonly DatabaseStore[];
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'same-results-'));
  server = await startPostgres();
  stores = [openSqlite(join(directory, 'millrace.db')), openPostgres(server.url)];
}, 180_000);
afterAll(async () => {
  await Promise.all(stores.map(closeStore));
  await server.stop();
  await rm(directory, { recursive: true });
});

/** Some are common, some rare; stop words are not searched. */
const word = fc.constantFrom(
  ...['mill', 'mill', 'mills', 'gate', 'gate', 'race', 'wheel', 'the', '水車', 'max_tokens'],
  ...['running', 'createAgent', 'naïve', '⑴', "it's"],
);
const text = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(' '));
const queries = fc.array(text, { minLength: 1, maxLength: 4 });

describe('openSqlite and openPostgres', () => {
  let made = 0;

  it('G3: find the same memories in the same order', async () => {
    const memories = fc.array(fc.record({ text, createdAt: fc.nat(3) }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(memories, queries, async (given, asked) => {
        const scope = { userId: `user ${(made += 1)}` };
        const results = await Promise.all(
          stores.map(async ({ longTermMemory }) => {
            const named = given.map((memory, at) => ({ ...memory, id: `${at}` }));
            await lastValueFrom(longTermMemory.record$(scope, named));
            const found: unknown[] = [];
            for (const query of asked) {
              found.push(
                await lastValueFrom(longTermMemory.recall$(scope, { text: query, limit: 10 })),
              );
            }
            return found;
          }),
        );
        expect(results[0]).toEqual(results[1]);
      }),
      { numRuns: 60 },
    );
  });

  it('find the same passages with the same scores in the same order', async () => {
    const chunk = fc.record({ title: fc.option(text, { nil: '' }), text });
    const document = fc.array(chunk, { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(document, { maxLength: 8 }), queries, async (given, asked) => {
        const name = `index ${(made += 1)}`;
        const documents = given.map((chunks, at) => {
          let from = 0;
          return {
            source: `${at}.md`,
            text: chunks.map((it) => it.text).join(''),
            chunks: chunks.map((it) => ({ from, to: (from += it.text.length), title: it.title })),
          };
        });
        const results = await Promise.all(
          stores.map(async (store) => {
            const index = documentIndex(store, { name });
            await all(index.add$(documents));
            const found: unknown[] = [];
            for (const query of asked) {
              found.push(await last(index.retrieve$({ text: query, limit: 10 })));
            }
            return found;
          }),
        );
        expect(results[0]).toEqual(results[1]);
      }),
      { numRuns: 60 },
    );
  });
});
