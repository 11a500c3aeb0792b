import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concatMap, defer, delay, lastValueFrom, map, of, VirtualTimeScheduler } from 'rxjs';
import { createAgent, type Message } from '../index.js';
import { keepSessions, inProcessSessions, type SessionStore } from '../sessions/index.js';
import { finish, scriptedModel, text } from '../testing/index.js';
import {
  attach$,
  type CallStoreDriver,
  calls$,
  createCallStore,
  fork$,
  inProcessCalls,
  journal,
  prune$,
  steps$,
} from './index.js';
import { dyingAfter } from './dying-driver.test-support.js';
import { all } from './stored-calls.test-support.js';

const long = (n: number): string => `${n} ${'x'.repeat(2_000)}`;

/** A process with one conversation. It sends what it is asked, and keeps the messages of each request. */
const chatOn = async (
  driver: CallStoreDriver,
  store: SessionStore,
  { id = 's', answer = 'Yes.' } = {},
) => {
  const durable = journal(createCallStore(driver));
  const requests: (readonly Message[])[] = [];
  const agent = createAgent({
    model: scriptedModel(
      ...Array.from({ length: 200 }, () => (request: { readonly messages: readonly Message[] }) => {
        requests.push(request.messages);
        return [text(answer), finish()];
      }),
    ),
    use: [durable],
  });
  const session = await keepSessions(agent, store, { journal: durable }).open(id);
  return { session, agent, durable, requests };
};

/** Everything that is stored, by call, those that are not listed too. */
const stored = async (driver: CallStoreDriver) => {
  const ids = (await all(driver.list$())).flat().map(({ callId }) => callId);
  const texts = await Promise.all(
    ids.map(async (id) => (await all(driver.read$(id))).flat().map((it) => it.text)),
  );
  return { ids, bytes: texts.flat().reduce((bytes, { length }) => bytes + length, 0) };
};

const talk = async (calls: number, driver = inProcessCalls()): Promise<CallStoreDriver> => {
  const { session } = await chatOn(driver, inProcessSessions());
  for (let n = 0; n < calls; n += 1) await session.call(long(n), { callId: `c${n}` });
  return driver;
};

const openIn = async (driver: CallStoreDriver, callId: string): Promise<unknown> => {
  const records = (await all(createCallStore(driver).driver.read$(callId))).flat();
  const { text: written = 'null' } = records.find(({ name }) => name === `${callId}/open`) ?? {};
  return (JSON.parse(written) as { readonly history: unknown }).history;
};

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('the log of a conversation', () => {
  it('S9: what a session writes grows in proportion to its calls', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 20, max: 40 }), async (calls) => {
        const [once, twice] = [
          await stored(await talk(calls)),
          await stored(await talk(2 * calls)),
        ];
        expect(twice.bytes / once.bytes).toBeLessThan(2.2);
      }),
      { numRuns: 4 },
    );
  });

  it('S9: a store over the driver of another one shares it, too', async () => {
    const driver = inProcessCalls();
    await talk(10, createCallStore(driver).driver);
    expect((await stored(driver)).ids).toHaveLength(11);
    const { bytes } = await stored(await talk(10));
    expect((await stored(driver)).bytes).toBeLessThan(1.01 * bytes);
    expect(await openIn(createCallStore(driver).driver, 'c9')).toHaveLength(18);
    await all(prune$(createCallStore(createCallStore(driver).driver), { olderThanMs: 0 }));
    expect((await stored(driver)).ids).toEqual([]);
  });

  it('S7: each call is read whole, in the process that wrote it and in others', async () => {
    const driver = inProcessCalls();
    const { session, requests } = await chatOn(driver, inProcessSessions());
    for (let n = 0; n < 25; n += 1) await session.call(long(n), { callId: `c${n}` });
    for (const [n, messages] of requests.entries()) {
      expect(await openIn(driver, `c${n}`)).toEqual(plain(messages.slice(0, -1)));
      const events = await all(attach$(createCallStore(driver), `c${n}`));
      const asked = events.find((it) => it.type === 'preReasoning');
      expect(plain(asked?.messages)).toEqual(plain(messages));
    }
  });

  it('S6: a call is resumed from any record, with the history that it began with', async () => {
    for (let writes = 1; writes < 60; writes += 1) {
      const [driver, store] = [inProcessCalls(), inProcessSessions()];
      const before = await chatOn(driver, store);
      for (let n = 0; n < 6; n += 1) await before.session.call(long(n), { callId: `c${n}` });
      const dying = dyingAfter(driver, writes);
      const { session } = await chatOn(dying.driver, dying.sessionsOf(store));
      for (let n = 6; n < 9; n += 1) {
        session.call$(long(n), { callId: `c${n}`, onBusy: 'queue' }).subscribe({ error: () => 0 });
      }
      const isWhole = !dying.isDead();
      dying.end();
      const after = await chatOn(driver, store);
      await after.session.resume();
      const { messages } = await after.session.saveState();
      const asked = messages.filter(({ role }) => role === 'user');
      await after.session.call(long(9), { callId: 'last' });
      expect(plain(await openIn(driver, 'last'))).toEqual(plain(messages));
      for (const { callId } of await all(calls$(createCallStore(driver)))) {
        const steps = await all(steps$(createCallStore(driver), callId));
        expect(steps.map(({ summary }) => summary).join()).not.toContain('Cannot be read');
      }
      if (isWhole) {
        expect(asked).toHaveLength(9);
        return;
      }
    }
    throw new Error('It never ended.');
  });

  it('S7: a fork has the whole history', async () => {
    const driver = await talk(10);
    const store = createCallStore(driver);
    const newId = await lastValueFrom(fork$(store, 'c9', { at: 'open', sessionId: 'other' }));
    const { agent, durable, requests } = await chatOn(driver, inProcessSessions());
    const other = await keepSessions(agent, inProcessSessions(), { journal: durable }).open(
      'other',
    );
    await other.resume(newId);
    expect(requests.at(-1)).toHaveLength(19);
  });

  it('S7: is no call, and is removed with the last call of its session', async () => {
    const driver = await talk(10);
    const store = createCallStore(driver);
    expect(await all(calls$(store))).toHaveLength(10);
    expect((await stored(driver)).ids).toHaveLength(11);
    await all(prune$(store, { olderThanMs: 0, keep: ({ callId }) => callId === 'c9' }));
    expect(await openIn(driver, 'c9')).toHaveLength(18);
    await all(store.driver.remove$('c9'));
    expect((await stored(driver)).ids).toEqual([]);
  });

  it('S7: no call can have its id', async () => {
    const driver = await talk(10);
    const { session } = await chatOn(driver, inProcessSessions());
    const callId = '~conversation/s';
    const refused = { code: 'invalidRequest' };
    await expect(session.call('Hello.', { callId })).rejects.toMatchObject(refused);
    const forked$ = fork$(createCallStore(driver), 'c9', { at: 'open', callId });
    await expect(all(forked$)).rejects.toMatchObject(refused);
    expect((await stored(driver)).ids).toHaveLength(11);
  });

  it('S7: two processes add to it in turn, and it may be removed under them', async () => {
    const driver = inProcessCalls();
    const store = inProcessSessions();
    for (let n = 0; n < 30; n += 1) {
      const { session } = await chatOn(driver, store);
      await session.call(long(n), { callId: `c${n}` });
      expect(await openIn(driver, `c${n}`)).toHaveLength(2 * n);
      if (n % 9 !== 8) continue;
      await all(prune$(createCallStore(driver), { olderThanMs: 0 }));
      expect((await stored(driver)).ids).toEqual([]);
    }
  });

  it('S7: a call that begins while the last one is removed is read whole', () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.integer({ min: 0, max: 9 })), (delays) => {
        const time = new VirtualTimeScheduler();
        const driver = inProcessCalls();
        const slow = slowly(driver, time, () => Number(delays.next().value));
        const [mine, theirs] = [createCallStore(slow), createCallStore(slow)];
        const history = Array.from({ length: 12 }, (_, n) => messageOf(n));
        write(mine, 'a', history.slice(0, 8));
        time.flush();
        theirs.driver.remove$('a').subscribe({ error: fail });
        time.schedule(() => write(mine, 'b', history), Number(delays.next().value) * 4);
        time.flush();
        let written: unknown;
        createCallStore(driver)
          .driver.read$('b')
          .subscribe((records) => (written = JSON.parse(records[1]?.text ?? '')));
        expect(written).toEqual({ history });
      }),
      { numRuns: 300 },
    );
  });

  it('X15: a call whose log is gone has a broken step, and other calls are read', async () => {
    const driver = await talk(10);
    await all(driver.remove$('~conversation/s'));
    const store = createCallStore(driver);
    const steps = await all(steps$(store, 'c9'));
    expect(steps.map(({ id }) => id)).toEqual(['call', 'open', '1', 'reply']);
    expect(steps[1]?.summary).toContain('Cannot be read');
    expect(await all(calls$(store))).toHaveLength(10);
  });
});

const fail = (error: unknown): never => {
  throw error;
};

const messageOf = (n: number) => ({ id: `m${n}`, role: 'user', text: long(n) });

/** Records the first two steps of a call of the session `s`. */
const write = (
  { open$ }: ReturnType<typeof createCallStore>,
  callId: string,
  history: readonly unknown[],
): void => {
  open$(callId, ({ step$ }) =>
    step$(`${callId}/call`, () => of({ sessionId: 's' })).pipe(
      concatMap(() => step$(`${callId}/open`, () => of({ history }))),
    ),
  ).subscribe({ error: fail });
};

/** Each operation takes a time of its own. */
const slowly = (
  driver: CallStoreDriver,
  time: VirtualTimeScheduler,
  ms: () => number,
): CallStoreDriver => ({
  ...driver,
  claim$: (callId) =>
    of(0).pipe(
      delay(ms(), time),
      concatMap(() => driver.claim$(callId)),
      map(({ append$ }) => ({
        append$: (batch) =>
          of(batch).pipe(
            delay(ms(), time),
            concatMap((it) => append$(it)),
          ),
      })),
    ),
  read$: (...given) => defer(() => driver.read$(...given)).pipe(delay(ms(), time)),
  list$: (...given) => defer(() => driver.list$(...given)).pipe(delay(ms(), time)),
  remove$: (callId) =>
    of(0).pipe(
      delay(ms(), time),
      concatMap(() => driver.remove$(callId)),
    ),
});
