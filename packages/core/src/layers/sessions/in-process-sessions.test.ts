import { describe, expect, it, jest } from '@jest/globals';
import { defer, lastValueFrom, map, of } from 'rxjs';
import { sessionStoreContract } from '../../testing/index.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionStore, StoredSession } from './session-state.js';

describe('S4: the store of sessions in this process', () => {
  for (const { name, run } of sessionStoreContract(inProcessSessions)) it(name, run);

  it('orders sessions that were saved in the same millisecond', async () => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(1_000);
    try {
      const store = inProcessSessions();
      const ids = ['b', 'a', 'd', 'c'];
      for (const id of ids) await lastValueFrom(store.save$(id, {} as never, undefined));
      const found = await lastValueFrom(store.find$());
      expect(found.map(({ id }) => id)).toEqual(ids.toReversed());
      expect(found.map(({ savedAt }) => Math.floor(savedAt))).toEqual([1_000, 1_000, 1_000, 1_000]);
    } finally {
      now.mockRestore();
    }
  });

  it('gives a version never again', async () => {
    const store = inProcessSessions();
    const state = { version: 1 } as never;
    const save = (expected?: number) => lastValueFrom(store.save$('s', state, expected));
    const first = await save();
    await lastValueFrom(store.remove$('s'));
    await save();
    await expect(save(first)).rejects.toMatchObject({
      code: 'conflict',
      message: `The session 's' was to be saved after version 1, but the store has version 2. Another process has saved or removed it: open it again.`,
    });
  });
});

describe('S4: the contract of stores sees what breaks it', () => {
  const broken: Readonly<Record<string, (store: SessionStore) => Partial<SessionStore>>> = {
    'looks at no version': (store) => ({
      save$: (id, state) =>
        defer(() => {
          let known: number | undefined;
          store.load$(id).subscribe((stored) => {
            known = stored?.version;
          });
          return store.save$(id, state, known);
        }),
    }),
    'gives out what it holds': (store) => {
      const held = new Map<string, StoredSession>();
      return {
        save$: (id, state, expected) =>
          store.save$(id, state, expected).pipe(
            map((version) => {
              held.set(id, { version, state });
              return version;
            }),
          ),
        load$: (id) => defer(() => of(held.get(id))),
      };
    },
    'takes an id for a path': (store) => {
      const key = (id: string) => id.replaceAll(/[^a-z]/gi, '');
      return {
        load$: (id) => store.load$(key(id)),
        save$: (id, state, expected) => store.save$(key(id), state, expected),
      };
    },
    'removes nothing': () => ({ remove$: () => of(undefined) }),
    'finds all sessions on every page': (store) => ({
      find$: ({ before: _, ...query } = {}) => store.find$(query),
    }),
    'finds the oldest sessions first': (store) => ({
      find$: (query) => store.find$(query).pipe(map((found) => found.toReversed())),
    }),
    'searches only in titles': (store) => ({
      find$: ({ search = '', ...query } = {}) =>
        store
          .find$(query)
          .pipe(map((found) => found.filter(({ title = '' }) => title.includes(search)))),
    }),
    'forgets titles': (store) => ({
      find$: (query) =>
        store.find$(query).pipe(map((found) => found.map(({ title: _, ...session }) => session))),
    }),
    'returns one page for any limit': (store) => ({
      find$: (query) => store.find$({ ...query, limit: 1 }),
    }),
    'ignores the prefix': (store) => ({ find$: (query) => store.find$({ ...query, prefix: '' }) }),
  };

  it.each(Object.entries(broken))('%s', async (_name, breaking) => {
    const checks = sessionStoreContract(() => {
      const store = inProcessSessions();
      return { ...store, ...breaking(store) };
    });
    const results = await Promise.allSettled(checks.map(({ run }) => run()));
    expect(results.map(({ status }) => status)).toContain('rejected');
  });
});
