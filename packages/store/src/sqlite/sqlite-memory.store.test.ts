import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Embedder, MemoryFactory } from 'millrace';
import type { LongTermMemory } from 'millrace/long-term-memory';
import { longTermMemoryContract, memoryContract } from 'millrace/testing';
import { lastValueFrom, map, of } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { killWhileBranching } from '../memory/branching-process.test-support.js';
import { checkTrees } from '../memory/memory-trees.test-support.js';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import type { DatabaseStore } from '../store.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
let path: string;
let one: DatabaseStore;
let other: DatabaseStore;
const embedded: string[] = [];
const embedder: Embedder = {
  embed$: (texts) => {
    if (texts.some((text) => text.includes('fail'))) throw new Error('out of order');
    embedded.push(...texts);
    return of(
      texts.map((text) => [/cat|kitten/.test(text) ? 1 : 0, text.includes('car') ? 1 : 0, 0.01]),
    );
  },
};
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sqlite-memory-'));
  path = join(root, 'millrace.db');
  one = openSqlite(path, { longTermMemory: { embedder } });
  other = openSqlite(path);
});
afterAll(async () => {
  await Promise.all([one, other].map(closeStore));
  await rm(root, { recursive: true });
});

let made = 0;
/** The memories of two stores of one file, with sessions of their own. */
const newMemories = (): readonly [MemoryFactory, MemoryFactory] => {
  const own = `${(made += 1)}: `;
  return [(id) => one.memory(own + id), (id) => other.memory(own + id)];
};

describe('openSqlite: memory', () => {
  for (const { name, run } of memoryContract(() => newMemories()[0])) it(`G2: ${name}`, run);
  for (const { name, run } of sharedMemoryContract(() => Promise.resolve(newMemories()))) {
    it(`G2: ${name}`, run);
  }

  it('G2: has the trees that the pure functions make', () =>
    checkTrees(() => Promise.resolve(newMemories()), 100));

  it('G2: keeps what was confirmed to two processes, wherever they are killed', async () => {
    const opening = `
      import { openSqlite } from './dist/sqlite/open-sqlite.js';
      const memory = openSqlite(process.argv.at(-2)).memory('killed');
    `;
    await killWhileBranching(() => one.memory('killed'), opening, [path], [60, 90]);
  });
});

describe('openSqlite: longTermMemory', () => {
  /** One that has users of its own. */
  const newMemory = (store = one): LongTermMemory => {
    const own = `${(made += 1)}: `;
    const outer = <T extends { readonly userId: string }>(scope: T): T => ({
      ...scope,
      userId: scope.userId === '' ? '' : own + scope.userId,
    });
    const inner = <T extends { readonly scope: { readonly userId: string } }>(entry: T): T => ({
      ...entry,
      scope: { ...entry.scope, userId: entry.scope.userId.slice(own.length) },
    });
    const { record$, recall$, forget$ } = store.longTermMemory;
    return {
      record$: (scope, memories) =>
        record$(outer(scope), memories).pipe(map((it) => it.map(inner))),
      recall$: (scope, query) => recall$(outer(scope), query).pipe(map((it) => it.map(inner))),
      forget$: (scope, which) => forget$(outer(scope), which),
    };
  };
  for (const { name, run } of longTermMemoryContract(newMemory)) it(`G3: ${name}`, run);

  it('G3: finds by meaning what has no word of the query, and keeps the vectors', async () => {
    const memory = newMemory();
    const ann = { userId: 'ann' };
    await lastValueFrom(
      memory.record$(ann, [{ text: 'A cat.' }, { text: 'A car.' }, { text: 'Tea.' }]),
    );
    for (const time of ['first', 'again']) {
      embedded.length = 0;
      const found = await lastValueFrom(memory.recall$(ann, { text: 'kitten' }));
      expect(found.map(({ text }) => text)).toEqual(['A cat.']);
      expect(embedded).toEqual(
        time === 'first' ? ['kitten', 'Tea.', 'A car.', 'A cat.'] : ['kitten'],
      );
    }
    await lastValueFrom(memory.forget$(ann, 'all'));
    expect(await lastValueFrom(memory.recall$(ann, { text: 'kitten' }))).toEqual([]);
  });

  it('G3: finds by words if the embedder fails, and reports it', async () => {
    const memory = newMemory();
    const ann = { userId: 'ann' };
    await lastValueFrom(memory.record$(ann, [{ text: 'A cat.' }]));
    const warnings: string[] = [];
    const report = (warning: string): number => warnings.push(warning);
    const found = await lastValueFrom(memory.recall$(ann, { text: 'fail cat', report }));
    expect(found.map(({ text }) => text)).toEqual(['A cat.']);
    expect(warnings).toEqual([expect.stringContaining('out of order')]);
  });

  // Words whose compatibility forms have spaces, brackets or other punctuation, and those that a query language would read.
  it.each(['⑴', 'ﷺ', '½', 'max_tokens', 'NOT', 'NEAR', 'ÀÉ', '水車', 'ﬁ', 'K', 'a_b_c'])(
    'G3: finds the word %s, and no other',
    async (word) => {
      const memory = newMemory(other);
      const ann = { userId: 'ann' };
      await lastValueFrom(memory.record$(ann, [{ text: `It is ${word}.` }, { text: 'Tea' }]));
      const found = await lastValueFrom(memory.recall$(ann, { text: word }));
      expect(found.map(({ text }) => text)).toEqual(word === 'NOT' ? [] : [`It is ${word}.`]);
    },
  );
});
