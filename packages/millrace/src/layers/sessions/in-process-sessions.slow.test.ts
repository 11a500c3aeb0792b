import { describe, expect, it, jest } from '@jest/globals';
import { concatMap, defer, lastValueFrom, map, of, ReplaySubject, share, tap } from 'rxjs';
import { sessionStoreContract } from '../../testing/index.js';
import { noUsage } from '../../values/usage.js';
import { appendedState } from './appended-state.js';
import { inProcessSessions } from './in-process-sessions.js';
import {
  type SessionChange,
  sessionConflict,
  type SessionState,
  type SessionStore,
  type StoredSession,
} from './session-state.js';

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

/** A store that appends: it loads a state, changes it and saves it. `change` makes a mistake. */
const appending = (
  change: (change: SessionChange, state: SessionState) => SessionChange = (same) => same,
): Required<SessionStore> => {
  const store = inProcessSessions();
  return {
    ...store,
    append$: (id, given, expected) =>
      store.load$(id).pipe(
        concatMap((stored) => {
          if (stored === undefined) throw sessionConflict(id, expected, undefined);
          const state = stored.state as SessionState;
          return store.save$(id, appendedState(state, change(given, state)), expected);
        }),
      ),
  };
};

describe('S4: the contract of appends', () => {
  for (const { name, run } of sessionStoreContract(() => appending())) it(name, run);

  const rest = ({ messages: _, branches: __, earlierCalls: ___, ...others }: SessionState) =>
    others;
  const idOf = (entry: SessionChange['entries'][number] | undefined) =>
    entry && 'message' in entry ? entry.message.id : undefined;
  const broken: Readonly<Record<string, () => SessionStore>> = {
    'keeps the rest': () => appending((change, state) => ({ ...change, rest: rest(state) })),
    'keeps what the new rest has not': () =>
      appending((change, state) => ({ ...change, rest: { ...rest(state), ...change.rest } })),
    'moves the head to what it appends': () =>
      appending((change) => ({
        ...change,
        head: idOf(change.entries.at(-1)) ?? change.head,
      })),
    'appends everything at the end': () =>
      appending((change, state) => ({
        ...change,
        entries: change.entries.map((entry, at) => ({
          ...entry,
          after: idOf(change.entries[at - 1]) ?? state.messages.at(-1)?.id ?? null,
        })),
      })),
    'loses calls': () =>
      appending((change) => ({
        ...change,
        entries: change.entries.filter((entry) => 'message' in entry),
      })),
    'looks at no version': () => {
      const store = appending();
      return {
        ...store,
        append$: (id, change, expected) =>
          store
            .load$(id)
            .pipe(concatMap((stored) => store.append$(id, change, stored?.version ?? expected))),
      };
    },
    'takes an append for a session that it does not have': () => {
      const store = appending();
      const begin = { version: 1, messages: [], groups: {}, approvals: [], interrupted: false };
      return {
        ...store,
        append$: (id, change, expected) =>
          store
            .load$(id)
            .pipe(
              concatMap((stored) =>
                stored === undefined
                  ? store.save$(id, appendedState({ ...begin, usage: noUsage }, change), undefined)
                  : store.append$(id, change, expected),
              ),
            ),
      };
    },
    'keeps what was appended behind a whole save': () => {
      const store = appending();
      const kept = new Map<string, SessionChange>();
      return {
        ...store,
        append$: (id, change, expected) =>
          store.append$(id, change, expected).pipe(tap(() => kept.set(id, change))),
        load$: (id) =>
          store.load$(id).pipe(
            map((stored) => {
              const change = kept.get(id);
              const state = stored?.state as SessionState | undefined;
              const has = state?.messages.some(({ id: at }) => at === change?.head);
              return stored === undefined || change === undefined || has !== false
                ? stored
                : { ...stored, state: { ...state, title: 'kept' } };
            }),
          ),
      };
    },
    'gives an append the version of the state': () => {
      const store = appending();
      return {
        ...store,
        append$: (id, change, expected) =>
          store.append$(id, change, expected).pipe(map(() => expected)),
      };
    },
    'finds only what was saved as a whole': () => {
      const [store, whole] = [appending(), inProcessSessions()];
      return {
        ...store,
        save$: (id, state, expected) =>
          store.save$(id, state, expected).pipe(
            concatMap((version) =>
              whole.load$(id).pipe(
                concatMap((stored) => whole.save$(id, state, stored?.version)),
                map(() => version),
              ),
            ),
          ),
        find$: (query) => whole.find$(query),
      };
    },
    'appends at once': () => {
      const store = appending();
      return {
        ...store,
        append$: (...given) => {
          const appended$ = store
            .append$(...given)
            .pipe(share({ connector: () => new ReplaySubject(1) }));
          appended$.subscribe({ error: () => undefined });
          return appended$;
        },
      };
    },
  };

  it.each(Object.entries(broken))('sees what breaks it: %s', async (_name, create) => {
    const checks = sessionStoreContract(create);
    const results = await Promise.allSettled(checks.map(({ run }) => run()));
    expect(results.map(({ status }) => status)).toContain('rejected');
  });
});

describe('S4: changes that an earlier release has written', () => {
  it('have all of the earlier calls in their rest', () => {
    const state: SessionState = {
      version: 1,
      messages: [],
      groups: {},
      approvals: [],
      usage: noUsage,
      interrupted: false,
    };
    const calls = (...ids: readonly string[]) =>
      ids.map((callId) => ({ callId, usage: noUsage, hasEnded: true }));
    const { messages: _, ...rest } = { ...state, earlierCalls: calls('b', 'c') };
    const change = { entries: [], head: null, rest };
    const after = appendedState({ ...state, earlierCalls: calls('a') }, change);
    expect(after.earlierCalls).toEqual(calls('b', 'c'));
  });
});
