import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, type ModelChunk, tool } from 'millrace';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  mergeMap,
  of,
  ReplaySubject,
  Subscription,
  tap,
  toArray,
} from 'rxjs';
import { type StoreDevtoolsOptions, storeDevtools } from './index.js';
import { openPage, type PageClient } from './page-client.test-support.js';
import type { CallEntry } from './page/protocol.js';

const running: Subscription[] = [];
afterEach(() => {
  for (const each of running.splice(0)) each.unsubscribe();
});

const weather = tool({ name: 'weather', description: 'The weather.', run: () => 'Sunny' });

/** A store, an agent that records its calls there, and an open page. */
const opened = async (
  answers: readonly ScriptedAnswer[],
  isResumed = true,
  driver: CallStoreDriver = inProcessCalls(),
) => {
  const store = createCallStore(driver);
  const durable = journal(store);
  const model = scriptedModel(...answers);
  const agent = createAgent({ name: 'forecast', model, tools: [weather], use: [durable] });
  const options: StoreDevtoolsOptions = {
    port: 0,
    ...(isResumed && { agents: [agent] }),
  };
  const address$ = new ReplaySubject<string>(1);
  const serving = storeDevtools(store, options).subscribe(address$);
  const open = async (): Promise<PageClient> => {
    const page = await openPage(await firstValueFrom(address$));
    serving.add(page.leave);
    return page;
  };
  running.push(serving);
  return { agent, open };
};

const entryOf = ({ lines }: PageClient, id: string): CallEntry | undefined =>
  lines.flatMap((line) => (line.line === 'calls' ? line.calls : [])).findLast((it) => it.id === id);

const hasEnded = (page: PageClient, id: string): boolean =>
  page.items(id).some((item) => 'type' in item && item.type === 'postCall');

describe('devtools of a store', () => {
  it('list its calls, and read the log of one that is opened', async () => {
    const { agent, open } = await opened([[toolCall('weather')], [text('Sunny.')], [text('Two.')]]);
    await agent.call('How is it?', { callId: 'a' });
    await agent.call('And now?', { callId: 'b' });
    const page = await open();
    await page.until(() => entryOf(page, 'b') !== undefined);
    expect(page.lines[0]).toMatchObject({ line: 'hello', source: 'store', holdable: [] });
    expect(entryOf(page, 'a')).toMatchObject({
      ...{ agent: 'forecast', input: 'How is it?', status: 'done', reason: 'answer' },
      ...{ isOpen: false, isInspected: false },
    });
    expect(page.items('a')).toEqual([]);
    expect((await page.ask('GET', 'calls/a')).status).toBe(204);
    await page.until(() => hasEnded(page, 'a'));
    expect(page.items('b')).toEqual([]);
    expect(await (await page.ask('GET', 'search?q=SUNNY.')).json()).toEqual({ ids: ['a'] });
    expect((await page.ask('GET', 'calls/none')).status).toBe(404);
    expect((await page.ask('POST', 'calls/a/interrupt')).status).toBe(409);
  });

  it('show no stack for the error of a stored call, but the status and id of its request', async () => {
    const refused = () => {
      throw new MillraceError('auth', 'The key is refused.', { status: 401, requestId: 'req_7' });
    };
    const { agent, open } = await opened([refused]);
    await expect(agent.call('Hi', { callId: 'a' })).rejects.toThrow('The key is refused.');
    const page = await open();
    await page.until(() => entryOf(page, 'a') !== undefined);
    await page.ask('GET', 'calls/a');
    await page.until(() => page.items('a').some((it) => 'type' in it && it.type === 'error'));
    const log = JSON.stringify(page.items('a'));
    expect(log).toContain('"code":"auth"');
    expect(log).toContain('"status":401,"requestId":"req_7"');
    expect(log).not.toContain('stack');
    expect(await (await page.ask('GET', 'search?q=readError')).json()).toEqual({ ids: [] });
  });

  it('read what has changed, and not the whole list again', async () => {
    let time = 0;
    const driver = inProcessCalls(() => (time += 1));
    const read: number[] = [];
    const counted: CallStoreDriver = {
      ...driver,
      list$: (query) =>
        defer(() => {
          const at = read.push(0) - 1;
          return driver.list$(query).pipe(
            mergeMap((calls) => calls),
            map((call) => [call]),
            tap(() => (read[at] = (read[at] ?? 0) + 1)),
          );
        }),
    };
    const answers = Array.from({ length: 41 }, (): ScriptedAnswer => [text('Hi.')]);
    const { agent, open } = await opened(answers, true, counted);
    const metadata = { userId: 'ann' };
    for (let call = 0; call < 40; call += 1)
      await agent.call('Hi', { callId: `c${call}`, metadata });
    const page = await open();
    await page.until(() => entryOf(page, 'c0') !== undefined);
    expect(entryOf(page, 'c0')).toMatchObject({ userId: 'ann' });
    await agent.call('Hi', { callId: 'late' });
    await page.until(() => entryOf(page, 'late') !== undefined);
    const [first, ...others] = read;
    expect(first).toBe(40);
    expect(others.length).toBeGreaterThan(0);
    // What was written at the last known time is read again, and one that is older.
    expect(Math.max(...others)).toBeLessThan(4);
  });

  it('follow a call while another process runs it', async () => {
    const answer$ = new ReplaySubject<ModelChunk>(Infinity);
    const { agent, open } = await opened([answer$]);
    const page = await open();
    const reply = agent.call('How is it?', { callId: 'a' });
    answer$.next(text('Sun'));
    await page.until(() => entryOf(page, 'a') !== undefined);
    expect(entryOf(page, 'a')?.status).toBe('running');
    await page.ask('GET', 'calls/a');
    await page.until(() => page.items('a').length > 0);
    answer$.next(text('ny'));
    answer$.next(finish());
    answer$.complete();
    await reply;
    await page.until(() => hasEnded(page, 'a'));
    expect(entryOf(page, 'a')?.status).toBe('done');
  });

  it('fork a call, which its agent runs', async () => {
    const { agent, open } = await opened([[toolCall('weather')], [text('Sunny.')], [text('Wet.')]]);
    await agent.call('How is it?', { callId: 'a' });
    const page = await open();
    await page.until(() => entryOf(page, 'a') !== undefined);
    const answer = await page.ask('POST', 'calls/a/fork', { at: '2', edits: { '1/0': 'Rainy' } });
    const { id } = (await answer.json()) as { readonly id: string };
    await page.until(() => entryOf(page, id)?.status === 'done');
    expect(entryOf(page, id)?.forkedFrom).toEqual({ callId: 'a', at: '2' });
    await page.ask('GET', `calls/${id}`);
    await page.until(() => hasEnded(page, id));
    expect(JSON.stringify(page.items(id))).toContain('Wet.');
  });

  it('refuse a fork without a runner', async () => {
    const { agent, open } = await opened([[text('Hi.')]], false);
    await agent.call('Hi', { callId: 'a' });
    const page = await open();
    await page.until(() => entryOf(page, 'a') !== undefined);
    expect(entryOf(page, 'a')?.unforkable).toMatch(/do not have the agent 'forecast'/);
    expect((await page.ask('POST', 'calls/a/fork', { at: '1' })).status).toBe(409);
  });

  describe('of many calls', () => {
    /** A store that has one call so many times, and counts what is read. */
    const large = async (count: number) => {
      const driver = inProcessCalls();
      const durable = journal(createCallStore(driver));
      const model = scriptedModel([text('Sunny.')]);
      await createAgent({ name: 'forecast', model, use: [durable] }).call('Hi', { callId: 'a' });
      const [[known] = []] = await lastValueFrom(driver.list$({}).pipe(toArray()));
      if (known === undefined) throw new Error('There is no call.');
      const calls = Array.from({ length: count }, (_, at) => ({
        ...{ ...known, callId: `c${at}`, updatedAt: 2 * count - at },
        ...(known.last !== undefined && {
          last: { ...known.last, name: known.last.name.replace(/^a\//u, `c${at}/`) },
        }),
      }));
      const read = new Set<string>();
      const store = createCallStore({
        ...driver,
        list$: ({ writtenUntil = Infinity } = {}) =>
          of(calls.filter(({ updatedAt }) => updatedAt <= writtenUntil)),
        read$: (id, range) => {
          read.add(id);
          const renamed = (name: string) => name.replace(/^a\//u, `${id}/`);
          return driver
            .read$('a', range)
            .pipe(map((all) => all.map((it) => ({ ...it, name: renamed(it.name) }))));
        },
      });
      const address$ = new ReplaySubject<string>(1);
      running.push(storeDevtools(store, { port: 0 }).subscribe(address$));
      const page = await openPage(await firstValueFrom(address$));
      running.push(new Subscription(page.leave));
      await page.until(() => entryOf(page, 'c0') !== undefined);
      return { page, read };
    };

    const listed = ({ lines }: PageClient): number =>
      new Set(lines.flatMap((it) => (it.line === 'calls' ? it.calls.map(({ id }) => id) : [])))
        .size;

    it('list 10,000 by page, and read no more', async () => {
      const { page, read } = await large(10_000);
      expect(page.lines[0]).toMatchObject({ pageSize: 200 });
      expect([listed(page), read.size]).toEqual([200, 200]);
      for (const pages of [2, 3]) {
        expect(await (await page.ask('POST', 'older')).json()).toEqual({ isMore: true });
        await page.until(() => listed(page) === pages * 200);
        expect(read.size).toBeLessThanOrEqual(pages * 200 + 1);
      }
    });

    it('search all of them, a part at a time', async () => {
      const { page, read } = await large(2_500);
      const parts: number[] = [];
      let until: number | undefined;
      do {
        const from = until === undefined ? '' : `&until=${String(until)}`;
        const answer = await page.ask('GET', `search?q=c2499${from}`);
        const found = (await answer.json()) as { ids: string[]; until?: number };
        parts.push(found.ids.length);
        until = found.until;
        expect(read.size).toBeLessThanOrEqual(parts.length * 500 + 1);
      } while (until !== undefined);
      expect(parts).toEqual([...Array<number>(4).fill(0), 1]);
      await page.until(() => entryOf(page, 'c2499') !== undefined);
      expect((await page.ask('GET', 'search?q=x&until=never')).status).toBe(400);
    });

    it('open one that is not in the list by its id', async () => {
      const { page } = await large(1_000);
      expect((await page.ask('GET', 'calls/c500')).status).toBe(204);
      await page.until(() => hasEnded(page, 'c500'));
    });
  });

  it('report a store that fails, and continue', async () => {
    const driver = inProcessCalls();
    const store = createCallStore({
      ...driver,
      list$: () => {
        throw new Error('The disk is gone.');
      },
    });
    const address$ = new ReplaySubject<string>(1);
    running.push(storeDevtools(store, { port: 0 }).subscribe(address$));
    const page = await openPage(await firstValueFrom(address$));
    await page.until(() => page.lines.some(({ line }) => line === 'notice'));
    expect(page.lines.find(({ line }) => line === 'notice')).toMatchObject({
      text: expect.stringContaining('The disk is gone.'),
    });
    page.leave();
  });

  it('refuse what is not a store', () => {
    expect(() => storeDevtools({} as never)).toThrow(/a store of calls/);
    expect(() => storeDevtools(createCallStore(inProcessCalls()), { port: 0.5 })).toThrow(/'port'/);
  });
});
