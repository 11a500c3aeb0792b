import { describe, expect, it } from '@jest/globals';
import { concat, filter, firstValueFrom, mergeMap, type Observable, throwError } from 'rxjs';
import { inProcessMemory, MillraceError, type Reply, textOf } from '../index.js';
import { record } from '../testing/index.js';
import { attach$, calls$, createCallStore, fork$, inProcessCalls, steps$ } from './index.js';
import type { ForkOptions } from './fork.js';
import type { StoreOfCalls } from './call-store-driver.js';
import { payer } from './payer.test-support.js';
import { all, begun, step, storeWith, journalIn } from './stored-calls.test-support.js';
import { sessions } from '../layers/sessions/index.js';

/** A store with a call `c` that has ended. */
const paid = async () => {
  const driver = inProcessCalls(() => 0);
  const made = payer(driver);
  const reply = await made.agent.call('Pay c.', { callId: 'c', metadata: { callId: 'c' } });
  return { driver, store: createCallStore(driver), reply, ...made };
};

const fork = (store: StoreOfCalls, options: ForkOptions, callId = 'c') =>
  firstValueFrom(fork$(store, callId, options));

/** What a reply says, whoever says it and when. */
const said = ({ createdAt: _, elapsedMs: __, toolCalls, ...reply }: Reply, callId: string) => {
  const uses = toolCalls.map(({ ms: ___, ...use }) => use);
  const text = JSON.stringify({ ...reply, toolCalls: uses });
  return text.replaceAll(`"${callId}/`, '"');
};

const stepsIn = async (store: StoreOfCalls, callId: string) =>
  (await all(steps$(store, callId))).map(({ id }) => id);

const peopleIn = (effects: readonly string[]): string =>
  effects
    .map((effect) => effect.split(' ')[0])
    .sort()
    .join(' ');

const tornAfter = <T>(source$: Observable<T>): Observable<T> =>
  concat(
    source$,
    throwError(() => new MillraceError('invalidState', 'Torn.')),
  );

describe('fork$', () => {
  it('S7: forks at every boundary: what is before is not done again, what is after is, and the reply is the same', async () => {
    const { driver, store, reply, effects: original } = await paid();
    const ids = await stepsIn(store, 'c');
    expect(ids).toEqual([
      ...['call', 'open', '1'],
      ...['1/0/intent', '1/0', '1/1/intent'],
      ...['call_1_1/open', 'call_1_1/1', 'call_1_1/1/0/intent', 'call_1_1/1/0', 'call_1_1/2'],
      ...['call_1_1/reply', '1/1', '1/2/intent', '1/2'],
      ...['2', '2/0/intent', '2/0', '3', 'reply'],
    ]);
    const doneAgain: Record<string, string> = {};
    for (const at of ids.slice(1)) {
      const { agent, effects, asked, helped } = payer(driver);
      const newId = await fork(store, { at });
      const again = await record(journalIn(driver).resumeStream$(agent, newId));
      const last = again.at(-1);
      if (last?.type !== 'postCall') throw new Error('It has no reply.');
      expect(said(last.reply, newId)).toBe(said(reply, 'c'));
      expect(again.some(({ type }) => type === 'uncertain')).toBe(false);
      expect(effects.every((effect) => effect.split(' ')[1]?.startsWith(`${newId}/`))).toBe(true);
      expect(peopleIn([...original, ...effects].slice(0, 4))).toBe('ann bob cat dan');
      doneAgain[at] = `${asked.length} ${helped.length} ${peopleIn(effects)}`;
    }
    expect(doneAgain).toEqual({
      open: '3 2 ann bob cat dan',
      '1': '3 2 ann bob cat dan',
      '1/0/intent': '2 2 ann bob cat dan',
      '1/0': '2 2 ann bob cat dan',
      '1/1/intent': '2 2 bob cat dan',
      'call_1_1/open': '2 2 bob cat dan',
      'call_1_1/1': '2 2 bob cat dan',
      'call_1_1/1/0/intent': '2 1 bob cat dan',
      'call_1_1/1/0': '2 1 bob cat dan',
      'call_1_1/2': '2 1 bob cat',
      'call_1_1/reply': '2 0 bob cat',
      '1/1': '2 2 bob cat dan',
      '1/2/intent': '2 0 bob cat',
      '1/2': '2 0 bob cat',
      '2': '2 0 cat',
      '2/0/intent': '1 0 cat',
      '2/0': '1 0 cat',
      '3': '1 0 ',
      reply: '0 0 ',
    });
    expect(await stepsIn(store, 'c')).toEqual(ids);
  });

  it('S7: forks before a turn, under an id of its own, and reports its origin', async () => {
    const { store, agent, driver } = await paid();
    expect(await fork(store, { at: { iteration: 2 }, callId: 'd' })).toBe('d');
    expect((await stepsIn(store, 'd')).at(-1)).toBe('1/2');
    const forked = (await all(calls$(store))).find(({ callId }) => callId === 'd');
    const forkedFrom = { callId: 'c', at: { iteration: 2 } };
    expect(forked).toMatchObject({
      callId: 'd',
      status: 'unfinished',
      question: 'Pay c.',
      forkedFrom,
    });
    await journalIn(driver).resume(agent, 'd');
    const types = (await all(attach$(store, 'd'))).map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['stepReplayed', 'postCall']);
    await expect(fork(store, { at: '2', callId: 'd' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(fork(store, { at: '2', callId: 'c' })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('S7: the id comes when the fork can be resumed', async () => {
    const { store, agent, driver } = await paid();
    const replies: string[] = [];
    fork$(store, 'c', { at: 'reply' })
      .pipe(mergeMap((id) => journalIn(driver).resume$(agent, id)))
      .subscribe({
        next: ({ reason }) => replies.push(reason),
        error: (error: unknown) => replies.push(String(error)),
      });
    expect(replies).toEqual(['answer']);
  });

  it('S7: asks with the instructions of the agent that resumes it, after what is kept', async () => {
    const { store, driver } = await paid();
    const id = await fork(store, { at: { iteration: 2 } });
    const { agent, asked } = payer(driver, { options: { instructions: 'New.' } });
    const events = await record(journalIn(driver).resumeStream$(agent, id));
    expect(asked.map(({ system }) => system)).toEqual(['New.', 'New.']);
    expect(events.map(({ type }) => type).filter((type) => type === 'warning')).toHaveLength(1);
  });

  it('S7: gives kept steps another outcome', async () => {
    const { store, driver } = await paid();
    const asText = (value: unknown, from: string, to: string): unknown =>
      JSON.parse(JSON.stringify(value).replaceAll(from, to));
    const seen: string[] = [];
    const first = payer(driver);
    const id = await fork(store, {
      at: '2',
      edit: ({ id: at, value }) => {
        seen.push(at);
        expect(Object.isFrozen(value)).toBe(true);
        return at === '1/0' ? asText(value, 'pay ann.', 'Ann is not there.') : undefined;
      },
    });
    expect(textOf(await journalIn(driver).resume(first.agent, id))).toContain('Ann is not there.');
    expect(seen.slice(0, 3)).toEqual(['call', 'open', '1']);
    const nonsense = await fork(store, { at: '2', edit: { '1/0': { no: 'result' } } });
    await expect(journalIn(driver).resume(first.agent, nonsense)).rejects.toMatchObject({
      code: 'invalidState',
    });
    await expect(fork(store, { at: '2', edit: { '2': {} } })).rejects.toThrow(
      "does not keep a step '2'",
    );
    await expect(fork(store, { at: '2', edit: { open: 1n } })).rejects.toMatchObject({
      code: 'invalidState',
    });
  });

  it('S7: makes ids of the call those of the new one, and leaves what was said alone', async () => {
    const { store, driver } = await paid();
    const id = await fork(store, { at: 'reply' });
    const records = (await all(driver.read$(id))).flat();
    expect(records.every(({ name, seq }) => name.startsWith(`${id}/`) && seq === 0)).toBe(true);
    const [first = { text: '{}' }] = records;
    expect(JSON.parse(first.text)).toMatchObject({
      input: [{ id: `${id}/input/0`, content: [{ text: 'Pay c.' }] }],
      options: { metadata: { callId: 'c' } },
    });
    expect(records.some(({ text }) => text.includes('"c/'))).toBe(false);
  });

  it('S7: records of tools after the boundary are not kept, in any order', async () => {
    const tool = (index: number, to = `t${index}`) => ({
      intent: step(`c/1/${index}/intent`, { toolCall: { type: 'tool_call', id: to } }),
      result: step(`c/1/${index}`, {}),
    });
    const [a, b, c] = [tool(0), tool(1), tool(2)];
    const below = step('c/t2/open', {});
    const store = await storeWith({
      c: [
        ...[begun('c'), step('c/1', {}), a.intent, b.intent, c.intent],
        ...[below, c.result, b.result, a.result, step('c/2', {})],
      ],
    });
    const kept = async (at: string) => stepsIn(store, await fork(store, { at }));
    expect(await kept('1/1')).toEqual(['call', '1', '1/0/intent', '1/0']);
    expect(await kept('1/2')).toEqual(['call', '1', '1/0/intent', '1/0', '1/1/intent', '1/1']);
    expect(await kept('2')).toEqual(await stepsIn(store, 'c').then((ids) => ids.slice(0, -1)));
    // Of a broken-off call: nobody knows how the first tool ended, and the fork must not be the one to say.
    const broken = await storeWith({ c: [begun('c'), step('c/1', {}), a.intent, b.intent] });
    expect(await stepsIn(broken, await fork(broken, { at: '1/1' }))).toEqual([
      ...['call', '1', '1/0/intent'],
    ]);
  });

  it('S7: belongs to no session, and knows its history; or begins one with it', async () => {
    const driver = inProcessCalls(() => 0);
    const store = createCallStore(driver);
    const memory = inProcessMemory();
    const session = sessions(payer(driver).agent, { memory }).open('s');
    await session.call('Before.', { callId: 'b' });
    await session.call('Then?', { callId: 'c' });
    const history = await firstValueFrom(memory('s').load$());
    const alone = payer(driver);
    await journalIn(driver).resume(alone.agent, await fork(store, { at: '1' }));
    expect(alone.asked[0]?.messages.map(({ id }) => id)).toContain('b/input/0');
    expect(await firstValueFrom(memory('s').load$())).toEqual(history);
    const newId = await fork(store, { at: '1', sessionId: 'new' });
    await journalIn(driver).resume(sessions(alone.agent, { memory }).open('new'), newId);
    const forked = await firstValueFrom(memory('new').load$());
    expect(JSON.stringify(forked).replaceAll(`"${newId}/`, '"c/')).toBe(JSON.stringify(history));
    await expect(fork(store, { at: '1', sessionId: 's' })).rejects.toThrow('must not write into');
  });

  it('S7: a running call can be forked', async () => {
    const driver = inProcessCalls(() => 0);
    const store = createCallStore(driver);
    const { agent } = payer(driver);
    const forked$ = agent.stream$('Pay.', { callId: 'r' }).pipe(
      filter(
        ({ type, callId, iteration }) =>
          type === 'preReasoning' && callId === 'r' && iteration === 2,
      ),
      mergeMap(() => fork$(store, 'r', { at: '1/2' })),
    );
    const forkedId = await firstValueFrom(forked$);
    expect((await stepsIn(store, forkedId)).at(-1)).toBe('1/1');
  });

  it('S6: what is broken after the boundary does no harm, and before it is a typed error', async () => {
    const broken = step('c/2', '{"status":');
    const polluting = step('c/1', '{"__proto__":{"polluted":1},"a":{"callId":"c/t"}}');
    const store = await storeWith({
      c: [begun('c'), polluting, broken, step('c/3', {})],
      none: [step('none/1', {}), step('none/2', {})],
      later: [step('later/call', { version: 2 }), step('later/1', {})],
      deep: [
        begun('deep'),
        step('deep/1', '['.repeat(20_000) + ']'.repeat(20_000)),
        step('deep/2', 1),
      ],
    });
    const kept = (
      await all(store.driver.read$(await fork(store, { at: '2', callId: 'd' })))
    ).flat();
    expect(kept[1]?.text).toBe('{"a":{"callId":"d/t"}}');
    for (const [callId, at, code] of [
      ['c', '3', 'invalidState'],
      ['c', '9', 'invalidRequest'],
      ['c', 'call', 'invalidRequest'],
      ['none', '2', 'invalidState'],
      ['later', '1', 'invalidState'],
      ['deep', '2', 'invalidState'],
      ['unknown', '1', 'invalidResume'],
    ] as const) {
      await expect(fork(store, { at }, callId)).rejects.toMatchObject({ code });
    }
    await expect(fork(store, { at: '9' })).rejects.toThrow('It can be forked at: call, 1, 2, 3.');
    expect(() => fork$(store, 'c', {} as ForkOptions)).toThrow("needs 'at'");
    expect('polluted' in {}).toBe(false);
  });

  it('S6: a torn journal can be forked in its whole part', async () => {
    const { driver } = await storeWith({ c: [begun('c'), step('c/1', {}), step('c/2', {})] });
    const torn: StoreOfCalls = {
      driver: {
        ...driver,
        read$: (callId, range) =>
          callId === 'c' ? tornAfter(driver.read$(callId, range)) : driver.read$(callId, range),
      },
    };
    expect(await stepsIn(torn, await fork(torn, { at: '2' }))).toEqual(['call', '1']);
    await expect(fork(torn, { at: '3' })).rejects.toThrow('Torn.');
    await expect(all(steps$(torn, 'c'))).rejects.toThrow('Torn.');
  });
});
