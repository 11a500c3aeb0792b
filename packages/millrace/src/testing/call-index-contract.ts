import { lastValueFrom, toArray } from 'rxjs';
import type {
  CallQuery,
  CallStoreDriver,
  NewRecord,
  RemovedCall,
} from '../journal/call-store-driver.js';
import { isMillraceError } from '../values/errors.js';
import { deepStrictEqual, ok, rejects } from './assert.js';
import {
  append,
  at,
  type CallStoreHandles,
  event,
  holdCall,
  list,
  nextMillisecond,
  read,
  step,
  until,
  write,
} from './stored-calls.js';
import type { Check } from './verify-events.js';

export type CheckOfCalls = (
  name: string,
  run: (handles: CallStoreHandles & Required<Pick<CallStoreHandles, 'second'>>) => Promise<void>,
) => Check;

const begun = (id: string, sessionId?: string): NewRecord =>
  step(`${id}/call`, 0, JSON.stringify({ version: 1, agent: 'a', sessionId, input: [] }));

const ending = (record: NewRecord): NewRecord => ({ ...record, ends: true });

const idsOf = async (driver: CallStoreDriver, query: CallQuery): Promise<readonly string[]> =>
  (await list(driver, query)).map(({ callId }) => callId);

const removeAll = async (
  driver: CallStoreDriver,
  callIds: readonly string[],
): Promise<readonly RemovedCall[]> =>
  (await lastValueFrom(driver.removeAll$(callIds).pipe(toArray()))).flat();

/** How stores of calls list and remove them. */
export const callIndexChecks = (check: CheckOfCalls): readonly Check[] => [
  check('lists calls, the last written first', async ({ first, second }) => {
    await write(first, 'a', [step('a1')], [step('a2')]);
    await nextMillisecond();
    await write(second, 'b', [step('b1')]);
    await nextMillisecond();
    const hold = await holdCall(first, 'a');
    await append(hold, [event('a3', 7)]);
    // A release may become visible with a delay.
    const calls = await until(
      () => list(second),
      (found) => found.some(({ isOpen }) => !isOpen),
    );
    deepStrictEqual(
      calls.map(({ callId, isOpen, first: firstAt, last }) => [callId, isOpen, firstAt, last]),
      [
        ['a', true, ...at([step('a1')]), { ...event('a3', 7), position: 3 }],
        ['b', false, ...at([step('b1')]), ...at([step('b1')])],
      ],
    );
    for (const { createdAt, updatedAt } of calls) ok(createdAt > 0 && createdAt <= updatedAt);
    hold.leave();
  }),
  check('lists many calls, each once', async ({ first, second }) => {
    const ids = Array.from({ length: 120 }, (_, index) => `c${index}`);
    await Promise.all(ids.map((id) => write(first, id, [step(id)])));
    const calls = await list(second);
    deepStrictEqual(calls.map(({ callId }) => callId).sort(), [...ids].sort());
  }),
  check('lists the calls of a session, the newest first', async ({ first, second }) => {
    const ids = Array.from({ length: 12 }, (_, index) => `c${index}`);
    const odd = ['A', 'a', '\u0000\ud800"\\', 'x'.repeat(10_000)];
    for (const id of ids) await write(first, id, [begun(id, 's'), event('e', 1)]);
    for (const id of odd) await write(second, id, [begun(id, id)]);
    await write(first, 'none', [begun('none')]);
    await write(second, 'below', [begun('below', 't'), begun('c/call', 's')]);
    await write(second, 'c3', [event('e', 2)]);
    await write(first, 'c7', []);
    await lastValueFrom(second.remove$('c5'), { defaultValue: undefined });
    const expected = [...ids].reverse().filter((id) => id !== 'c5');
    for (const driver of [first, second]) {
      const calls = await list(driver, { sessionId: 's' });
      deepStrictEqual(
        calls.map(({ callId }) => callId),
        expected,
      );
      const places = calls.map(({ place = Number.NaN }) => place);
      places.forEach((place, index) => ok(place > (places[index + 1] ?? -1)));
      deepStrictEqual(calls.at(-1)?.first?.name, 'c0/call');
      for (const id of odd) {
        const [only, ...others] = await list(driver, { sessionId: id });
        deepStrictEqual([only?.callId, others], [id, []]);
      }
      deepStrictEqual(await list(driver, { sessionId: 'unknown' }), []);
    }
  }),
  check('lists an open call without records', async ({ first, second }) => {
    const hold = await holdCall(first, 'c');
    const [call] = await list(second);
    deepStrictEqual([call?.callId, call?.isOpen, call?.last], ['c', true, undefined]);
    hold.leave();
  }),
  check('keeps nothing of a call without records', async ({ first, second }) => {
    for (const driver of [first, second]) {
      const hold = await holdCall(driver, 'c');
      hold.leave();
    }
    const calls = await until(
      () => list(second),
      (found) => found.length === 0,
    );
    deepStrictEqual(calls, []);
    await write(second, 'c', [step('a')]);
    deepStrictEqual(await read(first, 'c'), at([step('a')]));
  }),
  check('deletes a call, unless it is open', async ({ first, second }) => {
    await write(first, 'kept', [step('a')]);
    const hold = await holdCall(first, 'c');
    await append(hold, [step('a')]);
    for (const driver of [first, second]) {
      await rejects(lastValueFrom(driver.remove$('c')), { code: 'conflict' });
    }
    await append(hold, [step('b')]);
    hold.leave();
    await lastValueFrom(second.remove$('c'), { defaultValue: undefined });
    deepStrictEqual(await read(first, 'c'), []);
    await rejects(append(hold, [step('late')]), { code: 'conflict' });
    deepStrictEqual(
      (await list(first)).map(({ callId }) => callId),
      ['kept'],
    );
    await write(first, 'c', [step('again')]);
    deepStrictEqual(await read(second, 'c'), at([step('again')]));
  }),
  check('lists the calls that have not ended, however they were written', async (handles) => {
    const { first, second } = handles;
    const last = ending(event('end', 1));
    await write(first, 'begun', [begun('begun', 's')]);
    await write(first, 'ended', [begun('ended', 's')], [last]);
    await write(first, 'replied', [begun('replied', 's'), ending(step('replied/reply'))]);
    await write(first, 'resumed', [begun('resumed', 's')], [last]);
    await write(second, 'resumed', [event('e', 2)]);
    await write(first, 'again', [begun('again'), last]);
    await write(second, 'again', [event('e', 2)], [ending(event('end', 3))]);
    await write(first, 'passed', [begun('passed'), last, event('e', 2)]);
    await write(first, 'plain', [begun('plain')], [{ ...event('end', 1), ends: false }]);
    await write(first, 'removed', [begun('removed', 's')]);
    await lastValueFrom(second.remove$('removed'), { defaultValue: undefined });
    const running = await holdCall(first, 'running');
    await append(running, [begun('running', 's')]);
    const over = await holdCall(first, 'over');
    await append(over, [begun('over', 's'), last]);
    for (const driver of [first, second]) {
      const unfinished = await idsOf(driver, { isUnfinished: true });
      deepStrictEqual(unfinished.toSorted(), ['begun', 'passed', 'plain', 'resumed', 'running']);
      deepStrictEqual(await idsOf(driver, { isUnfinished: true, sessionId: 's' }), [
        ...['running', 'resumed', 'begun'],
      ]);
      deepStrictEqual((await list(driver, {})).length, 9);
    }
    await append(running, [last]);
    await append(over, [event('e', 2)]);
    [running, over].forEach((hold) => hold.leave());
    deepStrictEqual((await idsOf(second, { isUnfinished: true })).toSorted(), [
      'begun',
      'over',
      'passed',
      'plain',
      'resumed',
    ]);
    deepStrictEqual(await read(second, 'ended'), at([begun('ended', 's'), event('end', 1)]));
  }),
  check('lists no call as unfinished after its last event', async ({ first, second }) => {
    const replied = (id: string): readonly NewRecord[] => [begun(id, 's'), step(`${id}/reply`, 1)];
    const last = ending(event('postCall', 2));
    await write(first, 'left', replied('left'));
    const hold = await holdCall(first, 'running');
    await append(hold, replied('running'));
    // With a reply and no last event, a store may take them for ended ones.
    for (const driver of [first, second]) {
      const unfinished = await idsOf(driver, { isUnfinished: true });
      ok(unfinished.every((id) => ['left', 'running'].includes(id)));
      deepStrictEqual(
        (await list(driver, { sessionId: 's' })).map(({ callId, last: latest }) => [
          callId,
          latest?.name,
        ]),
        ['running', 'left'].map((id) => [id, `${id}/reply`]),
      );
    }
    await append(hold, [last]);
    hold.leave();
    // Another process resumes it, and writes nothing but its end.
    await write(second, 'left', [last]);
    for (const driver of [first, second]) {
      deepStrictEqual(await idsOf(driver, { isUnfinished: true }), []);
      deepStrictEqual(await idsOf(driver, { sessionId: 's' }), ['running', 'left']);
      deepStrictEqual(await read(driver, 'left'), at([...replied('left'), event('postCall', 2)]));
    }
  }),
  check('lists the calls that were last written until a time', async ({ first, second }) => {
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) {
      await write(id === 'b' ? second : first, id, [begun(id, id === 'c' ? 't' : 's')]);
      await nextMillisecond();
    }
    await write(second, 'd', [ending(event('end', 1))]);
    await nextMillisecond();
    await write(second, 'a', [event('e', 1)]);
    for (const driver of [first, second]) {
      const all = await list(driver);
      const times = all.map(({ updatedAt }) => updatedAt);
      const [newest = 0] = times;
      for (const end of [...times, ...times.map((time) => time - 1), -1, 0, newest * 2]) {
        for (const query of [{}, { isUnfinished: true }, { sessionId: 's' }] as const) {
          const expected = await list(driver, query);
          deepStrictEqual(
            await idsOf(driver, { ...query, writtenUntil: end }),
            expected.filter(({ updatedAt }) => updatedAt <= end).map(({ callId }) => callId),
          );
        }
      }
      deepStrictEqual(
        all.map(({ callId }) => callId),
        ['a', 'd', 'c', 'b'],
      );
      deepStrictEqual(await idsOf(driver, { isUnfinished: true }), ['a', 'c', 'b']);
    }
  }),
  check('deletes many calls, but none that is open', async ({ first, second }) => {
    const ids = Array.from({ length: 150 }, (_, index) => `c${index}`);
    for (const id of ids) await write(first, id, [begun(id, id === 'c7' ? undefined : 's')]);
    await write(second, 'kept', [begun('kept', 's')]);
    const hold = await holdCall(first, 'open');
    await append(hold, [begun('open', 's')]);
    void second.removeAll$(ids);
    deepStrictEqual((await list(second, { sessionId: 's' })).length, 151);
    const removed = await removeAll(second, [...ids, 'open', 'unknown']);
    deepStrictEqual(
      removed.toSorted((one, other) => (one.callId < other.callId ? -1 : 1)),
      [...ids, 'unknown']
        .toSorted()
        .map((callId) =>
          callId === 'c7' || callId === 'unknown' ? { callId } : { callId, sessionId: 's' },
        ),
    );
    deepStrictEqual(await removeAll(first, []), []);
    for (const driver of [first, second]) {
      deepStrictEqual((await idsOf(driver, {})).toSorted(), ['kept', 'open']);
      deepStrictEqual(await idsOf(driver, { sessionId: 's' }), ['open', 'kept']);
      deepStrictEqual((await idsOf(driver, { isUnfinished: true })).toSorted(), ['kept', 'open']);
      deepStrictEqual(await read(driver, 'c0'), []);
    }
    await append(hold, [event('e', 1)]);
    hold.leave();
    await write(first, 'c0', [begun('c0', 's')]);
    deepStrictEqual(await idsOf(second, { sessionId: 's' }), ['c0', 'open', 'kept']);
    await until(
      () => removeAll(first, ['open']),
      (found) => found.length === 1,
    );
    await rejects(append(hold, [step('late')]), { code: 'conflict' });
    deepStrictEqual(await idsOf(second, { sessionId: 's' }), ['c0', 'kept']);
  }),
  check('deletes calls whose writer has lost its lease', async ({ first, second, expire }) => {
    if (expire === undefined) return;
    const lost = await holdCall(first, 'c');
    await append(lost, [begun('c', 's')]);
    await expire('c');
    deepStrictEqual(await removeAll(second, ['c']), [{ callId: 'c', sessionId: 's' }]);
    // No other writer has it, but its records are gone.
    const late: unknown = await append(lost, [step('late')]).catch((error: unknown) => error);
    ok(isMillraceError(late) && (late.code === 'conflict' || late.code === 'store'));
    deepStrictEqual(await read(second, 'c'), []);
    deepStrictEqual(await list(second), []);
    lost.leave();
  }),
];
