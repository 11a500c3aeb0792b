import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk, tool } from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, ReplaySubject, type Subscription } from 'rxjs';
import { type StoreDevtoolsOptions, storeDevtools } from './index.js';
import { openPage, type PageClient } from './page-client.test-support.js';
import type { CallEntry } from './page/protocol.js';

const running: Subscription[] = [];
afterEach(() => {
  for (const each of running.splice(0)) each.unsubscribe();
});

const weather = tool({ name: 'weather', description: 'The weather.', run: () => 'Sunny' });

/** A store, an agent that records its calls there, and an open page. */
const opened = async (answers: readonly ScriptedAnswer[], isResumed = true) => {
  const store = createCallStore(inProcessCalls());
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
