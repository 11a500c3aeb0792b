import { deepStrictEqual, ok, rejects, strictEqual } from './assert.js';
import { lastValueFrom } from 'rxjs';
import type {
  CallStoreDriver,
  NewRecord,
  RecordRange,
  StoredRecord,
} from '../journal/call-store-driver.js';
import type { Check } from './verify-events.js';
import { isMillraceError } from '../values/errors.js';
import { callIndexChecks, type CheckOfCalls } from './call-index-contract.js';
import {
  append,
  at,
  type CallStoreHandles,
  event,
  holdCall,
  list,
  read,
  step,
  write,
} from './stored-calls.js';

/** The contract of stores of calls. `create` returns an empty one. */
export const journalContract = (
  create: () => CallStoreHandles | Promise<CallStoreHandles>,
): readonly Check[] => {
  const check: CheckOfCalls = (name, run) => ({
    name,
    run: async () => {
      const handles = await create();
      await run({ second: handles.first, ...handles });
    },
  });
  return [
    check('starts empty', async ({ first }) => {
      deepStrictEqual(await read(first, 'c'), []);
      deepStrictEqual(await list(first), []);
      await lastValueFrom(first.remove$('c'), { defaultValue: undefined });
    }),
    check('is cold', async ({ first }) => {
      void first.claim$('c');
      void first.remove$('c');
      const hold = await holdCall(first, 'c');
      void hold.claim.append$([step('a')]);
      deepStrictEqual(await read(first, 'c'), []);
      hold.leave();
    }),
    check('returns records in order, with their positions', async ({ first, second }) => {
      await write(first, 'c', [step('a', 0), event('said', 3)], [step('b', 3)]);
      await write(second, 'c', [event('said', 4)]);
      const expected = [step('a', 0), event('said', 3), step('b', 3), event('said', 4)];
      for (const driver of [first, second]) deepStrictEqual(await read(driver, 'c'), at(expected));
    }),
    check('appends nothing for an empty list', async ({ first }) => {
      await write(first, 'c', [], [step('a')], []);
      deepStrictEqual(await read(first, 'c'), at([step('a')]));
    }),
    check('reads a range', async ({ first }) => {
      const all = at([step('a', 0), event('x', 1), event('y', 2), step('b', 2), event('z', 3)]);
      await write(first, 'c', all.slice(0, 2).map(asNew), all.slice(2).map(asNew));
      const ranges: readonly RecordRange[] = [
        {},
        { kind: 'step' },
        { kind: 'event' },
        { after: 2 },
        { after: 5 },
        { after: 99 },
        { afterSeq: 0 },
        { afterSeq: 2 },
        { kind: 'step', after: 1 },
        { kind: 'event', after: 2, afterSeq: 2 },
      ];
      for (const range of [...ranges, ...ranges]) {
        deepStrictEqual(await read(first, 'c', range), all.filter(isIn(range)));
      }
    }),
    check('stores thousands of records', async ({ first, second }) => {
      const batches = Array.from({ length: 25 }, (_, batch) =>
        Array.from({ length: 100 }, (_, index) => event('e', batch * 100 + index)),
      );
      await write(first, 'c', ...batches);
      const all = await read(second, 'c');
      deepStrictEqual(all, at(batches.flat()));
      deepStrictEqual(await read(second, 'c', { after: 2_490 }), all.slice(2_490));
    }),
    check('stores any text of a megabyte', async ({ first, second }) => {
      const odd = ['\u0000', '\ud800', '\udc00x', '🍵é', '\ufdd00000', '\n\r\u2028', '\'\\"%'];
      const records = [
        ...odd.map((text) => step(text, 0, JSON.stringify(text))),
        ...odd.map((text) => event(`e${text}`, 1, text)),
        step('é'.repeat(20_000), 1, JSON.stringify('🍵'.repeat(500_000))),
        step('last', 1, JSON.stringify('x'.repeat(1_000_000))),
      ];
      await write(first, 'c', records);
      await write(first, 'c', [event('e', 2)]);
      deepStrictEqual(await read(second, 'c'), at([...records, event('e', 2)]));
      const [call] = await list(second);
      strictEqual(call?.last?.seq, 2);
    }),
    check('appends all records or none', async ({ first, second }) => {
      const hold = await holdCall(first, 'c');
      const batch = Array.from({ length: 40 }, (_, index) => event('e', index, 'x'.repeat(2_000)));
      const appending = (async () => {
        for (let round = 0; round < 15; round += 1) await append(hold, batch);
      })();
      const whole = { isDone: false };
      void appending.then(() => (whole.isDone = true));
      while (!whole.isDone) strictEqual((await read(second, 'c')).length % batch.length, 0);
      await appending;
      strictEqual((await read(second, 'c')).length, 15 * batch.length);
      hold.leave();
    }),
    check('accepts or rejects any call id, and confuses no two', async ({ first, second }) => {
      const taken: string[] = [];
      for (const callId of hostileIds) {
        if (await isTaken(first, callId)) taken.push(callId);
      }
      ok(taken.includes('a') && taken.includes('A') && taken.includes('a/b'));
      for (const callId of hostileIds) {
        const records = await read(second, callId).catch(asRefused);
        deepStrictEqual(
          records.map(({ text }) => text),
          taken.includes(callId) ? [JSON.stringify(callId)] : [],
        );
      }
      const ids = (await list(second)).map(({ callId }) => callId);
      deepStrictEqual([...ids].sort(), [...taken].sort());
    }),
    check('has one writer', async ({ first, second }) => {
      const hold = await holdCall(first, 'c');
      for (const driver of [first, second]) {
        await rejects(holdCall(driver, 'c'), { code: 'conflict' });
      }
      await append(hold, [step('a')]);
      await write(second, 'other', [step('b')]);
      deepStrictEqual(await read(second, 'c'), at([step('a')]));
      hold.leave();
    }),
    check('lets one of several concurrent writers claim a call', async ({ first, second }) => {
      const tries = await Promise.allSettled(
        [first, second, first, second].map((driver) => holdCall(driver, 'c')),
      );
      const holds = tries.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
      strictEqual(holds.length, 1);
      holds.forEach((hold) => hold.leave());
    }),
    check('lets a released call be claimed again', async ({ first, second }) => {
      for (const driver of [first, second, second, first]) {
        await write(driver, 'c', [step('a')]);
      }
      strictEqual((await read(first, 'c')).length, 4);
      const left = first.claim$('c').subscribe({ error: () => undefined });
      left.unsubscribe();
      await write(second, 'c', [step('b')]);
    }),
    check('writes nothing after the claim was released', async ({ first, second }) => {
      const left = await holdCall(first, 'c');
      left.leave();
      await rejects(append(left, [step('late')]), { code: 'conflict' });
      const hold = await holdCall(second, 'c');
      await rejects(append(left, [step('late')]), { code: 'conflict' });
      await append(hold, [step('a')]);
      deepStrictEqual(await read(first, 'c'), at([step('a')]));
      hold.leave();
    }),
    check('writes nothing after the lease was lost', async ({ first, second, expire }) => {
      if (expire === undefined) return;
      const lost = await holdCall(first, 'c');
      await append(lost, [step('a')]);
      await expire('c');
      const hold = await holdCall(second, 'c');
      await rejects(append(lost, [step('late')]), { code: 'conflict' });
      await append(hold, [step('b')]);
      await rejects(append(lost, [step('late')]), { code: 'conflict' });
      await rejects(lost.lost, { code: 'conflict' });
      await append(hold, [step('c')]);
      await rejects(holdCall(first, 'c'), { code: 'conflict' });
      deepStrictEqual(await read(first, 'c'), at(['a', 'b', 'c'].map((name) => step(name))));
      hold.leave();
    }),
    check('emits when another handle writes', async ({ first, second }) => {
      const hold = await holdCall(first, 'c');
      const seen = new Promise<void>((resolve, reject) => {
        const changes = second.changes$('c').subscribe({
          next: () => {
            read(second, 'c').then((records) => {
              if (records.length === 0) return;
              changes.unsubscribe();
              resolve();
            }, reject);
          },
          error: reject,
          complete: () => reject(new Error('changes$() has completed')),
        });
      });
      await append(hold, [event('e', 0)]);
      await seen;
      hold.leave();
    }),
    ...callIndexChecks(check),
    check('ends claims and change streams when it is closed', async ({ first, second, close }) => {
      if (close === undefined) return;
      const hold = await holdCall(first, 'c');
      const followed = lastValueFrom(first.changes$('c'), { defaultValue: undefined });
      const appended = append(hold, [step('a')]);
      await close();
      await Promise.all([appended, followed]);
      const late = [hold.lost, append(hold, [step('late')]), holdCall(first, 'c'), list(first)];
      for (const work of late) await rejects(work, { code: 'store' });
      if (second === first) return;
      await write(second, 'c', [step('b')]);
      deepStrictEqual(await read(second, 'c'), at([step('a'), step('b')]));
    }),
  ];
};

const asNew = ({ kind, name, seq, text }: StoredRecord): NewRecord => ({ kind, name, seq, text });

const hostileIds = [
  ...['a', 'A', 'á', 'a/b', 'a_b', 'a_2fb', 'a\\b', '..', '.', '../../x', '/etc/x', 'con', 'nul'],
  ...['__proto__', 'constructor', 'a\u0000b', 'a\nb', ' ', '', '%', "a' OR '1'='1", 'c.lock'],
  ...['\ud800', '\udc00', '\ufffd', '🍵', 'x'.repeat(10_000), `${'x'.repeat(9_999)}y`],
];
const isTaken = async (driver: CallStoreDriver, callId: string): Promise<boolean> => {
  try {
    await write(driver, callId, [step('id', 0, JSON.stringify(callId))]);
    return true;
  } catch (error) {
    asRefused(error);
    return false;
  }
};
const asRefused = (error: unknown): readonly StoredRecord[] => {
  ok(isMillraceError(error) && (error.code === 'config' || error.code === 'tooLarge'));
  return [];
};
const isIn =
  ({ kind, after = 0, afterSeq = -1 }: RecordRange) =>
  (record: StoredRecord): boolean =>
    (kind ?? record.kind) === record.kind && record.position > after && record.seq > afterSeq;
