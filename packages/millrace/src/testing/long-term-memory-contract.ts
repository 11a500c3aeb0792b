import { deepStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { lastValueFrom } from 'rxjs';
import type {
  LongTermMemory,
  MemoryEntry,
  MemoryScope,
  NewMemory,
} from '../layers/long-term-memory/long-term-memory.js';
import type { Check } from './verify-events.js';

const ann: MemoryScope = { userId: 'ann' };
const bob: MemoryScope = { userId: 'bob' };
const annToday: MemoryScope = { userId: 'ann', sessionId: 'today' };
const annLater: MemoryScope = { userId: 'ann', sessionId: 'later' };

const hostileIds = ['a', '__proto__', 'constructor', '../../a', 'a\u0000b', "a' OR '1'='1", '%'];

const record = (
  memory: LongTermMemory,
  scope: MemoryScope,
  ...memories: readonly (string | NewMemory)[]
): Promise<readonly MemoryEntry[]> =>
  lastValueFrom(
    memory.record$(
      scope,
      memories.map((it) => (typeof it === 'string' ? { text: it } : it)),
    ),
  );

const recall = async (
  memory: LongTermMemory,
  scope: MemoryScope,
  text = '',
  limit = 100,
): Promise<readonly string[]> =>
  (await lastValueFrom(memory.recall$(scope, { text, limit }))).map((entry) => entry.text);

const sorted = (texts: readonly string[]): readonly string[] => [...texts].sort();

/** The contract of long-term memories. `create` returns an empty one. */
export const longTermMemoryContract = (create: () => LongTermMemory): readonly Check[] => [
  {
    name: 'starts empty',
    run: async () => {
      deepStrictEqual(await recall(create(), ann), []);
      deepStrictEqual(await recall(create(), ann, 'tea'), []);
      strictEqual(await lastValueFrom(create().forget$(ann, 'all')), 0);
    },
  },
  {
    name: 'returns entries as they were recorded',
    run: async () => {
      const memory = create();
      const given = { id: 'm', text: ' Likes\ntea 🍵 ', kind: 'odd', createdAt: 7 };
      const [kept] = await record(memory, annToday, { ...given, metadata: { from: 'a\u2028' } });
      const whole = { ...given, scope: annToday, metadata: { from: 'a\u2028' } };
      deepStrictEqual(kept, whole);
      const [found] = await lastValueFrom(memory.recall$(annToday, { text: 'tea' }));
      const { score = 0, ...entry } = found ?? { score: -1 };
      ok(score >= 0);
      deepStrictEqual(entry, whole);
      JSON.stringify(found);
    },
  },
  {
    name: 'gives facts an id and the time by default',
    run: async () => {
      const kept = await record(create(), ann, 'tea', 'milk');
      strictEqual(new Set(kept.map(({ id }) => id)).size, 2);
      for (const { kind, createdAt, metadata } of kept) {
        deepStrictEqual([kind, metadata], ['fact', {}]);
        ok(Number.isFinite(createdAt));
      }
    },
  },
  {
    name: 'ranks entries with the words first, up to the limit',
    run: async () => {
      const memory = create();
      await record(memory, ann, 'The cat is grey.', 'Tea, and no milk.', 'Lives in Oslo.');
      strictEqual((await recall(memory, ann, 'which tea?'))[0], 'Tea, and no milk.');
      strictEqual((await recall(memory, ann, 'OSLO', 1))[0], 'Lives in Oslo.');
      strictEqual((await recall(memory, ann, '', 2)).length, 2);
    },
  },
  {
    name: 'finds words of scripts without spaces',
    run: async () => {
      const memory = create();
      await record(memory, ann, '猫は灰色です', '東京の水車が好き', 'コーヒー');
      strictEqual((await recall(memory, ann, '水車はどこ'))[0], '東京の水車が好き');
    },
  },
  {
    name: 'returns the newest first without a query',
    run: async () => {
      const memory = create();
      await record(memory, ann, { text: 'b', createdAt: 2 }, { text: 'a', createdAt: 1 });
      await record(memory, ann, { text: 'c', createdAt: 3 });
      for (const blank of ['', ' \n'])
        deepStrictEqual(await recall(memory, ann, blank), ['c', 'b', 'a']);
    },
  },
  {
    name: 'accepts any query',
    run: async () => {
      const memory = create();
      await record(memory, ann, 'tea');
      for (const text of ['?!', '%_\'"\\', '\u0000', '\ud800', '*:&|!()', 'tea '.repeat(10_000)]) {
        await recall(memory, ann, text);
      }
    },
  },
  {
    name: 'records no id or text twice, and no blank text',
    run: async () => {
      const memory = create();
      const first = await record(memory, ann, { id: 'm', text: 'tea', createdAt: 1 });
      const again = await record(memory, ann, { id: 'm', text: 'other' }, { id: 'n', text: 'tea' });
      deepStrictEqual(again, [...first, ...first]);
      deepStrictEqual(await record(memory, ann, '', ' \n'), []);
      await record(memory, ann, 'milk', 'milk');
      deepStrictEqual(sorted(await recall(memory, ann)), ['milk', 'tea']);
    },
  },
  {
    name: 'is cold, for each subscription',
    run: async () => {
      const memory = create();
      const record$ = memory.record$(ann, [{ text: 'tea' }]);
      const recall$ = memory.recall$(ann, { text: '' });
      const forget$ = memory.forget$(ann, 'all');
      deepStrictEqual(await recall(memory, ann), []);
      await lastValueFrom(record$);
      strictEqual((await lastValueFrom(recall$)).length, 1);
      strictEqual(await lastValueFrom(forget$), 1);
      strictEqual((await lastValueFrom(recall$)).length, 0);
      await lastValueFrom(record$);
      strictEqual((await lastValueFrom(recall$)).length, 1);
    },
  },
  {
    name: 'separates users with any ids, even for equal ids and texts',
    run: async () => {
      const memory = create();
      const users = hostileIds.map((userId) => ({ userId }));
      for (const scope of users) {
        const [kept] = await record(memory, scope, { id: 'm', text: `tea of ${scope.userId}` });
        deepStrictEqual(kept?.scope, scope);
        await record(memory, scope, { id: 'n', text: 'the same' });
      }
      for (const scope of users) {
        const own = [`tea of ${scope.userId}`, 'the same'];
        deepStrictEqual(sorted(await recall(memory, scope)), sorted(own));
        deepStrictEqual((await recall(memory, scope, 'tea')).slice(0, 1), [own[0]]);
      }
    },
  },
  {
    name: 'shows entries of a session only in that session',
    run: async () => {
      const memory = create();
      await record(memory, ann, 'always');
      await record(memory, annToday, 'today');
      await record(memory, { userId: 'bob', sessionId: 'today' }, 'of bob');
      deepStrictEqual(sorted(await recall(memory, annToday)), ['always', 'today']);
      deepStrictEqual(await recall(memory, annLater), ['always']);
      deepStrictEqual(await recall(memory, ann), ['always']);
      deepStrictEqual(await recall(memory, bob), []);
    },
  },
  {
    name: 'does not confuse ids of users and sessions that concatenate equally',
    run: async () => {
      const memory = create();
      await record(memory, { userId: 'a', sessionId: 'b/c' }, 'one');
      await record(memory, { userId: 'a/b', sessionId: 'c' }, 'two');
      deepStrictEqual(await recall(memory, { userId: 'a', sessionId: 'b/c' }), ['one']);
      deepStrictEqual(await recall(memory, { userId: 'a/b', sessionId: 'c' }), ['two']);
      deepStrictEqual(await recall(memory, { userId: 'a/b/c' }), []);
    },
  },
  {
    name: 'forgets visible entries by id',
    run: async () => {
      const memory = create();
      for (const scope of [ann, bob, annToday, annLater]) {
        const text = `${scope.userId} ${scope.sessionId ?? ''}`;
        await record(memory, scope, { id: text, text });
      }
      const ids = ['ann ', 'bob ', 'ann today', 'ann later', 'unknown', 'ann '];
      strictEqual(await lastValueFrom(memory.forget$(annToday, ids)), 2);
      deepStrictEqual(await recall(memory, annToday), []);
      deepStrictEqual(await recall(memory, annLater), ['ann later']);
      deepStrictEqual(await recall(memory, bob), ['bob ']);
      deepStrictEqual(
        await record(memory, ann, { id: 'ann ', text: 'new' }).then((it) => it.length),
        1,
      );
      deepStrictEqual(await recall(memory, ann), ['new']);
    },
  },
  {
    name: 'forgets a session, and a user',
    run: async () => {
      const memory = create();
      for (const scope of [ann, bob, annToday, annLater]) await record(memory, scope, 'tea');
      strictEqual(await lastValueFrom(memory.forget$(annToday, 'all')), 1);
      strictEqual((await recall(memory, annToday)).length, 1);
      strictEqual(await lastValueFrom(memory.forget$(ann, 'all')), 2);
      for (const scope of [ann, annToday, annLater])
        deepStrictEqual(await recall(memory, scope), []);
      deepStrictEqual(await recall(memory, bob), ['tea']);
    },
  },
  {
    name: 'does not change a returned list',
    run: async () => {
      const memory = create();
      await record(memory, ann, 'a');
      const before = await lastValueFrom(memory.recall$(ann, { text: '' }));
      await record(memory, ann, 'b');
      await lastValueFrom(memory.forget$(ann, 'all'));
      strictEqual(before.length, 1);
    },
  },
  {
    name: 'rejects a scope without a user',
    run: async () => {
      const memory = create();
      await record(memory, ann, 'tea');
      for (const scope of [{ userId: '' }, { userId: 'ann', sessionId: '' }]) {
        await rejects(lastValueFrom(memory.recall$(scope, { text: '' })), { code: 'config' });
        await rejects(lastValueFrom(memory.record$(scope, [{ text: 'x' }])), { code: 'config' });
        await rejects(lastValueFrom(memory.forget$(scope, 'all')), { code: 'config' });
      }
      deepStrictEqual(await recall(memory, ann), ['tea']);
    },
  },
];
