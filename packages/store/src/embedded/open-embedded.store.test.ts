import { readdirSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createAgent, type Embedder, type MemoryFactory, tool } from '@millrace/core';
import type { LongTermMemory } from '@millrace/core/long-term-memory';
import { type Claim, journal } from '@millrace/core/journal';
import { sessions } from '@millrace/core/sessions';
import {
  journalContract,
  longTermMemoryContract,
  memoryContract,
  scriptedModel,
  sessionStoreContract,
  text,
  toolCall,
} from '@millrace/core/testing';
import { firstValueFrom, lastValueFrom, map, of, ReplaySubject, toArray } from 'rxjs';
import { checkTrees } from '../memory/memory-trees.test-support.js';
import { sharedMemoryContract } from '../memory/shared-memory.test-support.js';
import { closeStore } from '../close-store.test-support.js';
import type { DatabaseStore } from '../store.js';
import { openEmbedded } from './open-embedded.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
let store: DatabaseStore;
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
const options = { onProgress: () => undefined, longTermMemory: { embedder } };
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'embedded-'));
  store = openEmbedded(directory, options);
  await lastValueFrom(store.calls.driver.list$(), { defaultValue: [] });
}, 180_000);
afterAll(async () => {
  await closeStore(store);
  await rm(directory, { recursive: true });
});

it('X17: marks its directory, so that file tools refuse it', () => {
  expect(readdirSync(directory)).toContain('.millrace-store');
});

const empty = async (): Promise<void> => {
  const calls = await lastValueFrom(store.calls.driver.list$().pipe(toArray()));
  for (const { callId } of calls.flat()) await lastValueFrom(store.calls.driver.remove$(callId));
};

describe('openEmbedded: calls', () => {
  const contract = journalContract(async () => {
    await empty();
    const open = store;
    return {
      first: open.calls.driver,
      close: () => {
        store = openEmbedded(directory, options);
        return closeStore(open);
      },
    };
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

  it('G2: has the trees that the pure functions make', () =>
    checkTrees(() => {
      const memory = newMemory();
      return Promise.resolve([memory, memory]);
    }, 400));
});

describe('openEmbedded: sessions', () => {
  const contract = sessionStoreContract(async () => {
    for (const { id } of await lastValueFrom(store.sessions.find$({ limit: 1_000 }))) {
      await lastValueFrom(store.sessions.remove$(id));
    }
    return store.sessions;
  });
  for (const { name, run } of contract) it(`S4: ${name}`, run);
});

describe('openEmbedded: longTermMemory', () => {
  let made = 0;
  /** One that has users of its own. */
  const newMemory = (): LongTermMemory => {
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

  it('G3: finds by meaning what holds no word of the query, and keeps the vectors', async () => {
    const memory = newMemory();
    const ann = { userId: 'ann' };
    await lastValueFrom(
      memory.record$(ann, [{ text: 'A cat.' }, { text: 'A car.' }, { text: 'Tea.' }]),
    );
    for (const _ of ['made', 'kept']) {
      embedded.length = 0;
      const found = await lastValueFrom(memory.recall$(ann, { text: 'kitten' }));
      expect(found.map(({ text }) => text)).toEqual(['A cat.']);
      expect(embedded).toEqual(_ === 'made' ? ['kitten', 'Tea.', 'A car.', 'A cat.'] : ['kitten']);
    }
  });

  it('G3: finds by words where the embedder fails, and says so', async () => {
    const memory = newMemory();
    const ann = { userId: 'ann' };
    await lastValueFrom(memory.record$(ann, [{ text: 'A cat.' }]));
    const warnings: string[] = [];
    const report = (warning: string): number => warnings.push(warning);
    const found = await lastValueFrom(memory.recall$(ann, { text: 'fail cat', report }));
    expect(found.map(({ text }) => text)).toEqual(['A cat.']);
    expect(warnings).toEqual([expect.stringContaining('out of order')]);
  });
});

describe('openEmbedded', () => {
  it('C7: is refused in a directory that another one has, and says what to do', async () => {
    const other = openEmbedded(directory);
    const reading = lastValueFrom(other.calls.driver.list$(), { defaultValue: [] });
    await expect(reading).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(directory),
    });
    await closeStore(other);
  });

  it('S6: finds again what was there, has calls that nobody has any more, and makes no second database', async () => {
    const claimed = new ReplaySubject<Claim>(1);
    const held = store.calls.driver.claim$('held').subscribe(claimed);
    const claim = await firstValueFrom(claimed);
    const record = { kind: 'step', name: 'a', seq: 0, text: '1' } as const;
    await lastValueFrom(claim.append$([record]));
    await closeStore(store);
    await expect(lastValueFrom(claim.append$([record]))).rejects.toMatchObject({
      code: 'store',
      message: 'The store is closed. Open it again.',
    });
    const progress: string[] = [];
    store = openEmbedded(directory, { onProgress: (message) => progress.push(message) });
    expect(await lastValueFrom(store.calls.driver.read$('held'))).toEqual([
      { ...record, position: 1 },
    ]);
    await firstValueFrom(store.calls.driver.claim$('held'));
    expect(progress).toEqual([]);
    held.unsubscribe();
  });
});

describe('openEmbedded: a directory that is gone', () => {
  let place: string;
  let moving: DatabaseStore;
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'embedded-gone-'));
    moving = openEmbedded(join(place, 'store'), options);
    await lastValueFrom(moving.sessions.find$());
  }, 180_000);
  afterAll(async () => {
    await closeStore(moving);
    await rm(place, { recursive: true });
  });

  it('S6: is no conflict, and the error says which directory; put back, it goes on', async () => {
    const [here, elsewhere] = [join(place, 'store'), join(place, 'elsewhere')];
    const gone = {
      code: 'store',
      message: `The store in ${here} failed: the directory was moved or deleted while it was in use. Restore it, or open the store at its new path.`,
    };
    const model = scriptedModel([toolCall('move')], [text('Done.')]);
    const run = (): Promise<void> => rename(here, elsewhere);
    const tools = [tool({ name: 'move', description: 'Moves the directory.', run })];
    const agent = createAgent({ model, tools, use: [journal(moving.calls)] });
    await expect(agent.call('?')).rejects.toMatchObject(gone);
    // Nor does anything new begin.
    await expect(agent.call('?')).rejects.toMatchObject(gone);
    expect(model.requests).toHaveLength(1);
    const state = await sessions(agent).open('s').saveState();
    const saved = lastValueFrom(moving.sessions.save$('s', state, undefined));
    await expect(saved).rejects.toMatchObject(gone);
    await expect(lastValueFrom(moving.memory('s').load$())).rejects.toMatchObject(gone);
    await rename(elsewhere, here);
    expect(await lastValueFrom(moving.sessions.find$())).toEqual([]);
  });
});
