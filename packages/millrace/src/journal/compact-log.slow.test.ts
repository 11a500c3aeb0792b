import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { map } from 'rxjs';
import { fitContext } from '../layers/fitting/index.js';
import {
  type AgentEvent,
  createAgent,
  on,
  textOf,
  type Tool,
  tool,
  toolOutput,
  type Use,
} from '../index.js';
import { agentTool } from '../layers/teams/index.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import {
  attach$,
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  replay$,
  steps$,
} from './index.js';
import { dyingAfter } from './dying-driver.test-support.js';
import { all, event, storeWith, write } from './stored-calls.test-support.js';

const rawRecords = async (driver: CallStoreDriver, callId = 'c') =>
  (await all(driver.read$(callId))).flat();

const bytesIn = async (driver: CallStoreDriver): Promise<number> =>
  (await rawRecords(driver)).reduce((bytes, { text }) => bytes + text.length, 0);

const page = (n: number): string => `${n} ${'x'.repeat(1_500)}`;

/** What a call does in a turn, and what stands around it. */
interface Script {
  readonly tools?: (driver: CallStoreDriver) => readonly Tool[];
  readonly use?: Use;
  readonly says?: string;
}

const look = (): Tool => {
  let n = 0;
  return tool({ name: 'look', description: 'Looks.', run: () => page((n += 1)) });
};

const scripts: Readonly<Record<string, Script>> = {
  'tools with long results': {},
  'a model that talks': { says: page(0) },
  'many tool definitions': {
    tools: () => [
      look(),
      ...Array.from({ length: 20 }, (_, n) =>
        tool({ name: `t${n}`, description: page(n), run: () => '' }),
      ),
    ],
  },
  'a window over the conversation': { use: [fitContext({ contextWindow: 8_000 })] },
  'an interceptor that rebuilds every message': {
    use: [
      on(
        'preReasoning',
        map((event) => ({ ...event, messages: event.messages.map((it) => ({ ...it })) })),
      ),
    ],
  },
  'a sub-agent in each turn': {
    tools: () => [
      agentTool(
        createAgent({ name: 'look', model: scriptedModel(...fill(999, [text(page(1))])) }),
        { description: 'Looks.' },
      ),
    ],
  },
};

const fill = <T>(length: number, value: T): readonly T[] => Array.from({ length }, () => value);

const agentOf = (
  driver: CallStoreDriver,
  turns: number,
  { tools = () => [look()], use = [], says = '' }: Script,
) =>
  createAgent({
    model: scriptedModel(
      ...fill(turns, [text(says), toolCall('look', { question: '?', task: '?' }), finish()]),
      [text('Done.')],
    ),
    tools: tools(driver),
    use: [journal(createCallStore(driver)), ...use],
    limits: { maxIterations: turns + 1, maxToolCalls: turns + 1 },
  });

const written = async (turns: number, script: Script): Promise<number> => {
  const driver = inProcessCalls();
  await agentOf(driver, turns, script).call('Look.', { callId: 'c' });
  return bytesIn(driver);
};

describe('what a journal writes', () => {
  for (const [name, script] of Object.entries(scripts)) {
    it(`S9: grows in proportion to the turns: ${name}`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 20, max: 60 }), async (turns) => {
          const [once, twice] = [await written(turns, script), await written(2 * turns, script)];
          expect(twice / once).toBeLessThan(2.2);
        }),
        { numRuns: 10 },
      );
    });

    it(`S7: reads as it was reported: ${name}`, async () => {
      const driver = inProcessCalls();
      const store = createCallStore(driver);
      const agent = agentOf(driver, 6, script);
      const told = plain(await all(agent.stream$('Look.', { callId: 'c' })));
      expect(plain(await all(attach$(store, 'c')))).toEqual(told);
      expect(plain(await all(replay$(store, 'c', { speed: Infinity })))).toEqual(told);
      for (const { seq } of told) {
        const rest = told.filter((it) => it.seq > seq);
        expect(plain(await all(attach$(store, 'c', { afterSeq: seq })))).toEqual(rest);
        expect(plain(await all(attach$(createCallStore(driver), 'c', { afterSeq: seq })))).toEqual(
          rest,
        );
      }
    });
  }

  it('S6: a call is resumed from any record', async () => {
    const script: Script = { says: 'Hm.' };
    const whole = inProcessCalls();
    const reply = await agentOf(whole, 4, script).call('Look.', { callId: 'c' });
    const records = await rawRecords(whole);
    for (let cut = 2; cut < records.length; cut += 3) {
      const torn = inProcessCalls();
      const dying = dyingAfter(torn, cut);
      agentOf(dying.driver, 4, script)
        .call$('Look.', { callId: 'c' })
        .subscribe({ error: () => 0 });
      dying.end();
      const store = createCallStore(torn);
      const agent = createAgent({
        model: scriptedModel(
          ...fill(9, ({ messages }: { readonly messages: readonly unknown[] }) =>
            messages.length < 8
              ? [text('Hm.'), toolCall('look', { question: '?', task: '?' }), finish()]
              : [text('Done.')],
          ),
        ),
        tools: [look()],
        use: [journal(store)],
      });
      const resumed = await journal(store, { onUncertain: 'rerun' }).resume(agent, 'c');
      expect(textOf(resumed)).toBe(textOf(reply));
      const events = await all(attach$(store, 'c'));
      expect(events.at(-1)?.type).toBe('postCall');
    }
  });

  it('S7: what a tool passes to user interfaces breaks no record, if JSON cannot hold it', async () => {
    const details: { self?: unknown } = {};
    details.self = details;
    const shows = tool({
      name: 'look',
      description: 'Looks.',
      run: () => toolOutput({ content: 'x', details }),
    });
    const driver = inProcessCalls();
    const agent = agentOf(driver, 4, { tools: () => [shows] });
    const told = await all(agent.stream$('Look.', { callId: 'c' }));
    const followed = await all(attach$(createCallStore(driver), 'c'));
    expect(followed.map(({ seq, type }) => [seq, type])).toEqual(
      told.map(({ seq, type }) => [seq, type]),
    );
  });

  it('X15: what refers to something that is not there is a typed error', async () => {
    const messages = [{ id: 'm', role: 'user', content: [] }];
    const first = event(1, { type: 'preReasoning', messages, options: {} });
    for (const hostile of [
      { messages: { of: 9, parts: [[0, 1]] } },
      { messages: { of: 1, parts: [[0, 2]] } },
      { messages: { of: 1, parts: [[-1, 1]] } },
      { messages: { of: 1, parts: [['0', 1]] } },
      { messages: { of: 1, parts: 'all' } },
      { messages: { of: 1 } },
      { messages: { of: 1, parts: [] }, options: 7 },
    ]) {
      const own = { type: 'preReasoning', options: {}, ...hostile };
      const store = await storeWith({ c: [first, event(2, own), event(3)] });
      const heard: unknown[] = [];
      const attached$ = attach$(store, 'c');
      await new Promise<void>((resolve) => {
        attached$.subscribe({
          next: ({ seq }) => heard.push(seq),
          error: (error: { readonly code: string }) => {
            heard.push(error.code);
            resolve();
          },
        });
      });
      expect(heard).toEqual([1, 'invalidState']);
    }
    const delta = event(2, { type: 'reasoningChunk', delta: [['a', 0, 0], 'b'] });
    const store = await storeWith({ c: [event(1), delta] });
    await expect(all(replay$(store, 'c', { speed: Infinity }))).rejects.toMatchObject({
      code: 'invalidState',
    });
  });

  it('X15: a broken step hides no other', async () => {
    const driver = inProcessCalls();
    const records = await (async () => {
      const whole = inProcessCalls();
      await agentOf(whole, 1, {}).call('Look.', { callId: 'c' });
      return rawRecords(whole);
    })();
    const hostile = JSON.stringify({ history: { of: 77, parts: [[0, 1]] }, late: [] });
    await write(
      driver,
      'c',
      records.map((it) => (it.name === 'c/open' ? { ...it, text: hostile } : it)),
    );
    const steps = await all(steps$(createCallStore(driver), 'c'));
    expect(steps.map(({ id }) => id)).toEqual([
      'call',
      'open',
      '1',
      '1/0/intent',
      '1/0',
      '2',
      'reply',
    ]);
    expect(steps[1]?.summary).toContain('Cannot be read');
  });
});

describe('deltas in a journal', () => {
  const deltas = (events: readonly AgentEvent[]): string =>
    events.map((it) => (it.type === 'reasoningChunk' ? it.delta : '')).join('');

  it('S9: small ones share records, and are read one by one', () => {
    marbles(({ model, scheduler, flush }) => {
      const driver = inProcessCalls();
      const store = createCallStore(driver, { scheduler });
      const diagram = `${'t 9ms '.repeat(200)}(f|)`;
      const agent = createAgent({
        model: model(diagram, { t: text('abcdef'), f: finish() }),
        use: [journal(store)],
      });
      const told: AgentEvent[] = [];
      agent.stream$('?', { callId: 'c', scheduler }).subscribe((it) => told.push(it));
      const followed: AgentEvent[] = [];
      attach$(store, 'c').subscribe((it) => followed.push(it));
      flush();
      expect(deltas(told)).toHaveLength(1_200);
      expect(plain(followed)).toEqual(plain(told));
      let bytes = 0;
      let records = 0;
      driver.read$('c').subscribe((batch) => {
        for (const { name, text } of batch) {
          if (name !== 'reasoningChunk') continue;
          records += 1;
          bytes += text.length;
        }
      });
      expect(records).toBeLessThan(30);
      expect(bytes / 200).toBeLessThan(60);
      for (const { seq } of told) {
        const rest: AgentEvent[] = [];
        attach$(store, 'c', { afterSeq: seq }).subscribe((it) => rest.push(it));
        expect(plain(rest)).toEqual(plain(told.filter((it) => it.seq > seq)));
      }
    });
  });

  it('S7: a follower sees the first delta of a message immediately, and others within 100 ms', () => {
    marbles(({ model, scheduler, cold, expectObservable }) => {
      const store = createCallStore(inProcessCalls(), { scheduler });
      const agent = createAgent({
        model: model('a 9ms b 9ms c 499ms d 499ms (f|)', {
          ...{ a: text('a'), b: text('b'), c: text('c'), d: text('d'), f: finish() },
        }),
        use: [journal(store)],
      });
      cold('-a').subscribe(() => agent.call$('?', { callId: 'c', scheduler }).subscribe());
      const seen$ = attach$(store, 'c', { waitMs: 10, scheduler }).pipe(
        map((it) => (it.type === 'reasoningChunk' ? it.delta : '')),
      );
      expectObservable(seen$.pipe(map(String))).toBe('-(00a) 105ms (bc) 406ms d 499ms (00|)', {
        0: '',
        a: 'a',
        b: 'b',
        c: 'c',
        d: 'd',
      });
    });
  });

  it('S6: after a crash no event gets the number of a delta that was shown', () => {
    marbles(({ model, scheduler, flush, cold }) => {
      const driver = inProcessCalls();
      const dying = dyingAfter(driver, 5);
      const agent = (through: CallStoreDriver) =>
        createAgent({
          model: model('t 2ms t 2ms t 2ms t 2ms t 2ms t 2ms (f|)'),
          use: [journal(createCallStore(through, { scheduler }))],
        });
      const shown: AgentEvent[] = [];
      agent(dying.driver)
        .stream$('?', { callId: 'c', scheduler })
        .subscribe({ next: (it) => shown.push(it), error: () => undefined });
      const resumed: AgentEvent[] = [];
      cold('50ms a').subscribe(() => {
        dying.end();
        journal(createCallStore(driver, { scheduler }))
          .resumeStream$(agent(driver), 'c', { scheduler })
          .subscribe((it) => resumed.push(it));
      });
      flush();
      expect(shown.length).toBeGreaterThan(5);
      expect(resumed.at(-1)?.type).toBe('postCall');
      expect(resumed[0]?.seq).toBeGreaterThan(shown.at(-1)?.seq ?? Infinity);
    });
  });
});

const plain = (events: readonly AgentEvent[]): readonly AgentEvent[] =>
  JSON.parse(JSON.stringify(events)) as readonly AgentEvent[];
