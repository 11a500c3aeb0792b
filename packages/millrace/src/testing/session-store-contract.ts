import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { isMillraceError } from '../values/errors.js';
import { textBlock } from '../values/message.js';
import type { BranchEntry } from '../layers/sessions/session-tree.js';
import type { SessionState, SessionStore } from '../layers/sessions/session-state.js';
import { sessionAppendChecks } from './session-append-contract.js';
import { conflict, find, list, load, pagesOf, remove, save, stateOf } from './stored-sessions.js';
import { type Check, checksOf } from './verify-events.js';

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

/** A state with a title, messages, and messages on other branches. */
const titled = (
  title: string,
  texts: readonly string[],
  others: readonly string[] = [],
): SessionState => {
  const branches = others.map((text, at): BranchEntry => ({
    at,
    after: null,
    message: { id: `b${at}`, role: 'assistant', content: [textBlock(text)] },
  }));
  return { ...stateOf(...texts), title, ...(branches.length > 0 && { branches }) };
};

/** Saves a session until it is newer than another one: the clock of a store may be coarse. */
const saveNewest = async (store: SessionStore, id: string, state: SessionState): Promise<void> => {
  for (const until = Date.now() + 10_000; ;) {
    ok(Date.now() < until, 'The times of saves do not increase.');
    const before = (await find(store, { limit: 1 }))[0];
    await save(store, id, state, (await load(store, id))?.version);
    const own = (await find(store, { prefix: id })).find((session) => session.id === id);
    if (before === undefined || (own !== undefined && own.savedAt > before.savedAt)) return;
  }
};

const searched: readonly (readonly [text: string, search: string, isFound: boolean])[] = [
  ['Where is my order?', 'MY ORD', true],
  ['Where is my order?', 'my  ord', false],
  ['Straße, ΣΊΣΥΦΟΣ, Ünïcode', 'STRASSE', true],
  ['Straße, ΣΊΣΥΦΟΣ, Ünïcode', 'σίσυφος', true],
  ['Straße, ΣΊΣΥΦΟΣ, Ünïcode', 'u\u0308NÏ', true],
  ['100% of a_b', '0% of a_', true],
  ['100% of a_b', '1%b', false],
  ['100% of a_b', 'a.b', false],
  ['100 of aXb', 'a_b', false],
  [`It's "quoted" \\d+ (a|b) [c] $1 ?`, `'s "quoted" \\d+ (a|b) [c] $1 ?`, true],
  ['ddd', '\\d+', false],
  ['Tea 🍵 for two', '🍵 F', true],
  ['Tea 🍵 for two', '🍶', false],
  ['a\u0000b \ud800 c', 'A\u0000B \ud800', true],
  ['a\u0000b \ud800 c', '0000', false],
  ['a\u0000b \ud800 c', 'd800', false],
  ['one\ntwo', 'one\ntwo', true],
  ['{"type":"text"}', '{"type":"text"}', true],
  ['plain', '"text"', false],
];

/** Saves a session for each id that the store does not reject. */
const saveAccepted = async (
  store: SessionStore,
  ids: readonly string[],
): Promise<readonly string[]> => {
  const kept: string[] = [];
  for (const id of ids) {
    try {
      await save(store, id, stateOf(id));
      kept.push(id);
    } catch (error) {
      ok(isMillraceError(error) && error.code === 'invalidRequest', `${id}: ${String(error)}`);
    }
  }
  return kept;
};

/** The contract of session stores. `create` returns an empty one, or a Promise of it. */
export const sessionStoreContract = (
  create: () => SessionStore | Promise<SessionStore>,
): readonly Check[] => [
  ...checksOf(create, {
    'starts empty': async (store) => {
      strictEqual(await load(store, 's'), undefined);
      deepStrictEqual(await list(store), []);
    },
    'returns the saved state with a new version': async (store) => {
      const state = stateOf('Tea 🍵', '\u2028 "quoted" \\', '');
      const first = await save(store, 's', state);
      deepStrictEqual(await load(store, 's'), { version: first, state });
      const second = await save(store, 's', stateOf('more'), first);
      notStrictEqual(second, first);
      deepStrictEqual(await load(store, 's'), { version: second, state: stateOf('more') });
    },
    'rejects a state that does not follow the stored one': async (store) => {
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
    'lets one of several concurrent saves win': async (store) => {
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
    'copies states': async (store) => {
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
    'is cold': async (store) => {
      void store.save$('s', stateOf('a'), undefined);
      deepStrictEqual(await list(store), []);
      await save(store, 's', stateOf('a'));
      void store.remove$('s');
      deepStrictEqual(await list(store), ['s']);
    },
    'separates sessions with any ids, or rejects an id': async (store) => {
      const kept = await saveAccepted(store, hostileIds);
      ok(kept.includes('a'));
      for (const id of kept) deepStrictEqual((await load(store, id))?.state, stateOf(id));
      deepStrictEqual(await list(store), [...kept].sort());
    },
    'removes only the given session': async (store) => {
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
    'finds the newest sessions first, with their titles': async (store) => {
      const from = Date.now() - 86_400_000;
      await saveNewest(store, 'a', titled('First', ['x']));
      await saveNewest(store, 'b', stateOf('x'));
      await saveNewest(store, 'c', titled('Third 🍵\u0000', ['x']));
      const found = await find(store);
      deepStrictEqual(
        found.map(({ savedAt: _, ...session }) => session),
        [{ id: 'c', title: 'Third 🍵\u0000' }, { id: 'b' }, { id: 'a', title: 'First' }],
      );
      for (const { savedAt } of found) ok(savedAt > from && savedAt < from + 2 * 86_400_000);
      await saveNewest(store, 'a', titled('Another', ['x']));
      deepStrictEqual(
        (await find(store, { limit: 2 })).map(({ id, title }) => [id, title]),
        [
          ['a', 'Another'],
          ['c', 'Third 🍵\u0000'],
        ],
      );
    },
    'finds every session once, page by page, while others are saved and removed': async (store) => {
      const ids = Array.from({ length: 55 }, (_, at) => `s${at}`);
      await Promise.all(ids.map((id) => save(store, id, stateOf(id))));
      strictEqual((await find(store)).length, 50);
      const all = await find(store, { limit: 100 });
      deepStrictEqual([...all.map(({ id }) => id)].sort(), [...ids].sort());
      for (let at = 1; at < all.length; at += 1) {
        ok(Number(all[at - 1]?.savedAt) >= Number(all[at]?.savedAt));
      }
      for (const limit of [1, 7, 54, 55]) deepStrictEqual(await pagesOf(store, { limit }), all);
      let page = 0;
      const changed = await pagesOf(store, { limit: 10 }, async () => {
        page += 1;
        if (page === 1) await remove(store, all[9]?.id ?? '');
        else if (page < 4) await saveNewest(store, all[page]?.id ?? '', stateOf('again'));
      });
      deepStrictEqual(
        changed.map(({ id }) => id),
        all.map(({ id }) => id),
      );
    },
    'finds sessions by the beginning of their ids': async (store) => {
      const ids = [
        ...['ann/1', 'ann/2', 'anna/1', 'Ann/3', 'a_n/4', 'a%/5', '🍵/6', 'ä/7', '\\/8', "'/9"],
        `${'x'.repeat(300)}/1`,
        `${'x'.repeat(300)}/2`,
        '\u{10ffff}\u{10ffff}',
      ];
      const kept = await saveAccepted(store, ids);
      const prefixes = ['ann/', 'ann', 'A', 'a_', 'a%', '%', '_', '🍵', 'ä', '\\', "'", 'nn', ''];
      const long = ['x'.repeat(300), `${'x'.repeat(300)}/2`, 'x'.repeat(301), '\u{10ffff}'];
      for (const prefix of [...prefixes, ...long]) {
        deepStrictEqual(
          await list(store, { prefix, limit: 3 }),
          kept.filter((id) => id.startsWith(prefix)).sort(),
        );
      }
    },
    'finds sessions by a part of their titles or texts, on any branch': async (store) => {
      await save(store, 'title', titled('Orders of May', ['one', 'two']));
      await save(store, 'text', titled('x', ['one', 'my Order', 'two']));
      await save(store, 'branch', titled('x', ['one'], ['two', 'the ORDER of this branch']));
      await save(store, 'other', titled('x', ['ord', 'er'], ['or', 'der']));
      deepStrictEqual(await list(store, { search: 'order', limit: 1 }), [
        'branch',
        'text',
        'title',
      ]);
      deepStrictEqual(await list(store, { search: 'order', prefix: 't' }), ['text', 'title']);
      const version = (await load(store, 'text'))?.version;
      await save(store, 'text', titled('x', ['gone']), version);
      deepStrictEqual(await list(store, { search: 'ORDER' }), ['branch', 'title']);
      deepStrictEqual(await list(store, { search: '' }), ['branch', 'other', 'text', 'title']);
    },
    'searches for any characters': async (store) => {
      const kept = searched.map(([text], at) => [`${at}/`, text] as const);
      for (const [id, text] of kept) await save(store, id, titled('', [text]));
      for (const [at, [text, search, isFound]] of searched.entries()) {
        const found = await list(store, { prefix: `${at}/`, search });
        deepStrictEqual([text, search, found.length > 0], [text, search, isFound]);
      }
    },
    'rejects a query that is not valid': async (store) => {
      const queries: readonly object[] = [
        ...[0, -1, 1.5, Number.NaN, Infinity, '5'].map((limit) => ({ limit })),
        ...[Number.NaN, '5', undefined].map((savedAt) => ({ before: { savedAt, id: 's' } })),
        { before: { savedAt: 1 } },
        { before: 's' },
        { prefix: 5 },
        { search: ['a'] },
      ];
      for (const query of queries) await rejects(find(store, query), { code: 'invalidRequest' });
    },
  }),
  ...sessionAppendChecks(create),
];
