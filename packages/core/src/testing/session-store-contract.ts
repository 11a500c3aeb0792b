import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import { isMillraceError } from '../values/errors.js';
import { type Message, textBlock } from '../values/message.js';
import type { SessionStore, StoredSession } from '../layers/sessions/session-state.js';
import { noUsage } from '../values/usage.js';
import type { Check } from './verify-events.js';
import type { SessionState } from '../layers/sessions/index.js';

const stateOf = (...texts: readonly string[]): SessionState => ({
  version: 1,
  messages: texts.map((text, index): Message => ({
    id: `m${index}`,
    role: 'user',
    content: [textBlock(text)],
  })),
  groups: { web: true },
  approvals: [],
  usage: { ...noUsage, inputTokens: texts.length },
  interrupted: false,
});

const load = (store: SessionStore, id: string): Promise<StoredSession | undefined> =>
  lastValueFrom(store.load$(id));

const save = (
  store: SessionStore,
  id: string,
  state: SessionState,
  expected?: number,
): Promise<number> => firstValueFrom(store.save$(id, state, expected));

const list = async (store: SessionStore): Promise<readonly string[]> =>
  [...(await lastValueFrom(store.list$()))].sort();

const remove = (store: SessionStore, id: string): Promise<unknown> =>
  lastValueFrom(store.remove$(id), { defaultValue: undefined });

const conflict = { code: 'conflict' };

const hostileIds: readonly string[] = [
  '../../x',
  '/etc/passwd',
  'a\u0000b',
  '__proto__',
  'constructor',
  "a' OR '1'='1",
  'CON',
  'a/b',
  'A',
  'a',
  ' a',
  '.',
  'é',
  'e\u0301',
  'x'.repeat(10_000),
];

/** The contract of session stores. `create` returns an empty one, or a Promise of it. */
export const sessionStoreContract = (
  create: () => SessionStore | Promise<SessionStore>,
): readonly Check[] => [
  {
    name: 'starts empty',
    run: async () => {
      const store = await create();
      strictEqual(await load(store, 's'), undefined);
      deepStrictEqual(await list(store), []);
    },
  },
  {
    name: 'returns the saved state with a new version',
    run: async () => {
      const store = await create();
      const state = stateOf('Tea 🍵', '\u2028 "quoted" \\', '');
      const first = await save(store, 's', state);
      deepStrictEqual(await load(store, 's'), { version: first, state });
      const second = await save(store, 's', stateOf('more'), first);
      notStrictEqual(second, first);
      deepStrictEqual(await load(store, 's'), { version: second, state: stateOf('more') });
    },
  },
  {
    name: 'rejects a state that does not follow the stored one',
    run: async () => {
      const store = await create();
      await rejects(save(store, 's', stateOf('x'), 1), conflict);
      strictEqual(await load(store, 's'), undefined);
      const first = await save(store, 's', stateOf('a'));
      const second = await save(store, 's', stateOf('b'), first);
      const before = await load(store, 's');
      await rejects(save(store, 's', stateOf('x')), conflict);
      await rejects(save(store, 's', stateOf('x'), first), conflict);
      await rejects(save(store, 's', stateOf('x'), second + 1), conflict);
      deepStrictEqual(await load(store, 's'), before);
    },
  },
  {
    name: 'lets one of several concurrent saves win',
    run: async () => {
      const store = await create();
      let version: number | undefined;
      for (const round of [1, 2, 3, 4, 5]) {
        const savers = Array.from({ length: 20 }, (_, index) => `${round}/${index}`);
        const saves = await Promise.allSettled(
          savers.map((saver) => save(store, 's', stateOf(saver), version)),
        );
        const winners = savers.filter((_, index) => saves[index]?.status === 'fulfilled');
        strictEqual(winners.length, 1);
        for (const result of saves) {
          if (result.status === 'rejected') {
            ok(isMillraceError(result.reason) && result.reason.code === 'conflict');
          } else version = result.value;
        }
        deepStrictEqual(await load(store, 's'), { version, state: stateOf(...winners) });
      }
    },
  },
  {
    name: 'copies states',
    run: async () => {
      const store = await create();
      const state = { ...stateOf('a'), groups: { web: true } };
      await save(store, 's', state);
      state.groups.web = false;
      const given = (await load(store, 's'))?.state;
      deepStrictEqual(given, stateOf('a'));
      notStrictEqual((await load(store, 's'))?.state, given);
      try {
        Reflect.set(Object(Reflect.get(Object(given), 'groups')), 'web', 'no');
      } catch {
        // A frozen copy is fine.
      }
      deepStrictEqual((await load(store, 's'))?.state, stateOf('a'));
    },
  },
  {
    name: 'is cold',
    run: async () => {
      const store = await create();
      void store.save$('s', stateOf('a'), undefined);
      deepStrictEqual(await list(store), []);
      await save(store, 's', stateOf('a'));
      void store.remove$('s');
      deepStrictEqual(await list(store), ['s']);
    },
  },
  {
    name: 'separates sessions with any ids, or rejects an id',
    run: async () => {
      const store = await create();
      const kept: string[] = [];
      for (const id of hostileIds) {
        try {
          await save(store, id, stateOf(id));
          kept.push(id);
        } catch (error) {
          ok(isMillraceError(error) && error.code === 'invalidRequest', `${id}: ${String(error)}`);
        }
      }
      ok(kept.includes('a'));
      for (const id of kept) deepStrictEqual((await load(store, id))?.state, stateOf(id));
      deepStrictEqual(await list(store), [...kept].sort());
    },
  },
  {
    name: 'removes only the given session',
    run: async () => {
      const store = await create();
      const version = await save(store, 'a', stateOf('a'));
      await save(store, 'b', stateOf('b'));
      await remove(store, 'a');
      await remove(store, 'a');
      await remove(store, 'never there');
      deepStrictEqual(await list(store), ['b']);
      strictEqual(await load(store, 'a'), undefined);
      await rejects(save(store, 'a', stateOf('x'), version), conflict);
      await save(store, 'a', stateOf('again'));
      deepStrictEqual((await load(store, 'a'))?.state, stateOf('again'));
    },
  },
];
