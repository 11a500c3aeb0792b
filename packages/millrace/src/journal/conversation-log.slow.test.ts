import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  concat,
  concatMap,
  defer,
  delay,
  ignoreElements,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  takeLast,
  takeUntil,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { createAgent, type Message } from '../index.js';
import { keepSessions, inProcessSessions, type SessionStore } from '../layers/sessions/index.js';
import { finish, scriptedModel, text } from '../testing/index.js';
import {
  attach$,
  type CallQuery,
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
        const [mine, theirs] = [slow, slow].map((it) => createCallStore(it, { scheduler: time }));
        if (mine === undefined || theirs === undefined) return;
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

  it('S7: calls that are removed at the same time leave no log, and break no new call', () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.integer({ min: 0, max: 9 })), (delays) => {
        const time = new VirtualTimeScheduler();
        const driver = inProcessCalls();
        const slow = slowly(driver, time, () => Number(delays.next().value));
        const store = createCallStore(slow, { scheduler: time });
        const other = createCallStore(slow, { scheduler: time });
        const history = Array.from({ length: 12 }, (_, n) => messageOf(n));
        write(store, 'a', history.slice(0, 8));
        time.flush();
        write(store, 'b', history.slice(0, 9));
        time.flush();
        store.driver.remove$('a').subscribe({ error: fail });
        other.driver.remove$('b').subscribe({ error: fail });
        time.schedule(() => write(store, 'c', history), Number(delays.next().value) * 12);
        time.flush();
        let written: unknown;
        createCallStore(driver)
          .driver.read$('c')
          .subscribe((records) => (written = JSON.parse(records[1]?.text ?? '')));
        expect(written).toEqual({ history });
        store.driver.remove$('c').subscribe({ error: fail });
        time.flush();
        driver.list$().subscribe((calls) => expect(calls).toEqual([]));
      }),
      { numRuns: 1_000 },
    );
  });

  it('S7: only one at a time removes a log, so that it is the one that was closed', () => {
    const time = new VirtualTimeScheduler();
    const driver = inProcessCalls();
    const log = '~conversation/s';
    const late =
      (ms: number) =>
      <T>(source$: Observable<T>): Observable<T> =>
        of(0).pipe(
          delay(ms, time),
          concatMap(() => source$),
        );
    const scheduler = { scheduler: time };
    const looksLate = { ...driver, list$: (query?: CallQuery) => late(10)(driver.list$(query)) };
    const removesLate = {
      ...driver,
      remove$: (id: string) => late(id === log ? 100 : 0)(driver.remove$(id)),
    };
    const [store, first, second] = [
      createCallStore(driver, scheduler),
      createCallStore(removesLate, scheduler),
      createCallStore(looksLate, scheduler),
    ];
    const history = Array.from({ length: 12 }, (_, n) => messageOf(n));
    write(store, 'a', history.slice(0, 8));
    write(store, 'b', history.slice(0, 9));
    second.driver.remove$('a').subscribe({ error: fail });
    first.driver.remove$('b').subscribe({ error: fail });
    time.schedule(() => write(store, 'c', history), 50);
    time.flush();
    let written: unknown;
    store.driver.read$('c').subscribe((records) => (written = JSON.parse(records[1]?.text ?? '')));
    expect(written).toEqual({ history });
  });

  it('S7: a log that a crash left closed is opened by the next call', async () => {
    const driver = await talk(10);
    const closed = {
      kind: 'step',
      name: 'x',
      seq: 0,
      text: '{"version":1,"isClosed":true}',
    } as const;
    await all(
      driver.claim$('~conversation/s').pipe(
        concatMap(({ append$ }) => append$([closed])),
        takeLast(0),
        takeUntil(timer(1)),
      ),
    );
    const before = await stored(driver);
    const [mine] = [await chatOn(driver, inProcessSessions())];
    await mine.session.call(long(0), { callId: 'd' });
    const texts = (await all(driver.read$('~conversation/s'))).flat().map((it) => it.text);
    expect(texts.at(-1)).not.toContain('true');
    expect(before.ids).toHaveLength(11);
  });

  it('S9: a call waits no longer than a moment for a log that another one holds', async () => {
    const driver = await talk(10);
    const held = driver.claim$('~conversation/s').subscribe();
    const history = Array.from({ length: 30 }, (_, n) => messageOf(n));
    const slow: CallStoreDriver = {
      ...driver,
      claim$: (id) => (id === '~conversation/s' ? NEVER : driver.claim$(id)),
    };
    const began = performance.now();
    await new Promise<void>((done) => write(createCallStore(slow), 'd', history, done));
    expect(performance.now() - began).toBeLessThan(60_000);
    held.unsubscribe();
    expect(await openIn(driver, 'd')).toEqual(history);
  });

  it('S7: a step of a layer that looks like an opening is what it was', async () => {
    const driver = inProcessCalls();
    const store = createCallStore(driver);
    const history = Array.from({ length: 3_000 }, (_, n) => [n, 1]);
    const value = await lastValueFrom(
      store.open$('a', ({ step$ }) =>
        step$('a/call', () => of({ sessionId: 's' })).pipe(
          concatMap(() => step$('a/open', () => of({ history: [messageOf(1)] }))),
          concatMap(() => step$('a/market/open', () => of({ history }))),
        ),
      ),
    );
    expect(value).toEqual({ history });
    const records = (await all(createCallStore(driver).driver.read$('a'))).flat();
    expect(JSON.parse(records.at(-1)?.text ?? '')).toEqual({ history });
  });

  it('X15: after a damaged record of the log only the calls that refer to it are broken', async () => {
    const driver = await talk(10);
    const damaged: CallStoreDriver = {
      ...driver,
      read$: (id, range) =>
        driver
          .read$(id, range)
          .pipe(
            mergeMap((records) =>
              id === '~conversation/s'
                ? records.map((it, n) => [n === records.length - 1 ? { ...it, text: '{' } : it])
                : [records],
            ),
          ),
    };
    expect(await openIn(damaged, 'c4')).toEqual(await openIn(driver, 'c4'));
    await expect(openIn(damaged, 'c9')).rejects.toMatchObject({ code: 'invalidState' });
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
  complete?: () => void,
): void => {
  open$(callId, ({ step$ }) =>
    step$(`${callId}/call`, () => of({ sessionId: 's' })).pipe(
      concatMap(() => step$(`${callId}/open`, () => of({ history }))),
    ),
  ).subscribe({ error: fail, ...(complete && { complete }) });
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
            delayWhenDone(ms(), time),
          ),
      })),
    ),
  read$: (...given) => defer(() => driver.read$(...given)).pipe(delay(ms(), time)),
  list$: (...given) => defer(() => driver.list$(...given)).pipe(delay(ms(), time)),
  remove$: (callId) =>
    of(0).pipe(
      delay(ms(), time),
      concatMap(() => driver.remove$(callId)),
      delayWhenDone(ms(), time),
    ),
});

const delayWhenDone =
  <T>(ms: number, time: VirtualTimeScheduler) =>
  (done$: Observable<T>): Observable<T> =>
    concat(done$, of(0).pipe(delay(ms, time), ignoreElements()));
