import { deepStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { lastValueFrom } from 'rxjs';
import type {
  LongTermMemory,
  MemoryEntry,
  MemoryScope,
  NewMemory,
} from '../layers/long-term-memory/long-term-memory.js';
import { type Check, checksOf } from './verify-events.js';

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
export const longTermMemoryContract = (create: () => LongTermMemory): readonly Check[] =>
  checksOf(create, {
    'starts empty': async (memory) => {
      deepStrictEqual(await recall(memory, ann), []);
      deepStrictEqual(await recall(memory, ann, 'tea'), []);
      strictEqual(await lastValueFrom(memory.forget$(ann, 'all')), 0);
    },
    'returns entries as they were recorded': async (memory) => {
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
    'gives facts an id and the time by default': async (memory) => {
      const kept = await record(memory, ann, 'tea', 'milk');
      strictEqual(new Set(kept.map(({ id }) => id)).size, 2);
      for (const { kind, createdAt, metadata } of kept) {
        deepStrictEqual([kind, metadata], ['fact', {}]);
        ok(Number.isFinite(createdAt));
      }
    },
    'ranks entries with the words first, up to the limit': async (memory) => {
      await record(memory, ann, 'The cat is grey.', 'Tea, and no milk.', 'Lives in Oslo.');
      strictEqual((await recall(memory, ann, 'which tea?'))[0], 'Tea, and no milk.');
      strictEqual((await recall(memory, ann, 'OSLO', 1))[0], 'Lives in Oslo.');
      strictEqual((await recall(memory, ann, '', 2)).length, 2);
    },
    'finds words of scripts without spaces': async (memory) => {
      await record(memory, ann, '猫は灰色です', '東京の水車が好き', 'コーヒー');
      strictEqual((await recall(memory, ann, '水車はどこ'))[0], '東京の水車が好き');
    },
    'returns the newest first without a query': async (memory) => {
      await record(memory, ann, { text: 'b', createdAt: 2 }, { text: 'a', createdAt: 1 });
      await record(memory, ann, { text: 'c', createdAt: 3 });
      for (const blank of ['', ' \n'])
        deepStrictEqual(await recall(memory, ann, blank), ['c', 'b', 'a']);
    },
    'accepts any query': async (memory) => {
      await record(memory, ann, 'tea');
      for (const text of ['?!', '%_\'"\\', '\u0000', '\ud800', '*:&|!()', 'tea '.repeat(10_000)]) {
        await recall(memory, ann, text);
      }
    },
    'records no id or text twice, and no blank text': async (memory) => {
      const first = await record(memory, ann, { id: 'm', text: 'tea', createdAt: 1 });
      const again = await record(memory, ann, { id: 'm', text: 'other' }, { id: 'n', text: 'tea' });
      deepStrictEqual(again, [...first, ...first]);
      deepStrictEqual(await record(memory, ann, '', ' \n'), []);
      await record(memory, ann, 'milk', 'milk');
      deepStrictEqual(sorted(await recall(memory, ann)), ['milk', 'tea']);
    },
    'is cold, for each subscription': async (memory) => {
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
    'separates users with any ids, even for equal ids and texts': async (memory) => {
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
    'shows entries of a session only in that session': async (memory) => {
      await record(memory, ann, 'always');
      await record(memory, annToday, 'today');
      await record(memory, { userId: 'bob', sessionId: 'today' }, 'of bob');
      deepStrictEqual(sorted(await recall(memory, annToday)), ['always', 'today']);
      deepStrictEqual(await recall(memory, annLater), ['always']);
      deepStrictEqual(await recall(memory, ann), ['always']);
      deepStrictEqual(await recall(memory, bob), []);
    },
    'does not confuse ids of users and sessions that concatenate equally': async (memory) => {
      await record(memory, { userId: 'a', sessionId: 'b/c' }, 'one');
      await record(memory, { userId: 'a/b', sessionId: 'c' }, 'two');
      deepStrictEqual(await recall(memory, { userId: 'a', sessionId: 'b/c' }), ['one']);
      deepStrictEqual(await recall(memory, { userId: 'a/b', sessionId: 'c' }), ['two']);
      deepStrictEqual(await recall(memory, { userId: 'a/b/c' }), []);
    },
    'forgets visible entries by id': async (memory) => {
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
    'forgets a session, and a user': async (memory) => {
      for (const scope of [ann, bob, annToday, annLater]) await record(memory, scope, 'tea');
      strictEqual(await lastValueFrom(memory.forget$(annToday, 'all')), 1);
      strictEqual((await recall(memory, annToday)).length, 1);
      strictEqual(await lastValueFrom(memory.forget$(ann, 'all')), 2);
      for (const scope of [ann, annToday, annLater])
        deepStrictEqual(await recall(memory, scope), []);
      deepStrictEqual(await recall(memory, bob), ['tea']);
    },
    'does not change a returned list': async (memory) => {
      await record(memory, ann, 'a');
      const before = await lastValueFrom(memory.recall$(ann, { text: '' }));
      await record(memory, ann, 'b');
      await lastValueFrom(memory.forget$(ann, 'all'));
      strictEqual(before.length, 1);
    },
    'rejects a scope without a user': async (memory) => {
      await record(memory, ann, 'tea');
      for (const scope of [{ userId: '' }, { userId: 'ann', sessionId: '' }]) {
        await rejects(lastValueFrom(memory.recall$(scope, { text: '' })), { code: 'config' });
        await rejects(lastValueFrom(memory.record$(scope, [{ text: 'x' }])), { code: 'config' });
        await rejects(lastValueFrom(memory.forget$(scope, 'all')), { code: 'config' });
      }
      deepStrictEqual(await recall(memory, ann), ['tea']);
    },
  });
