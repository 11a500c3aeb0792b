import { describe, expect, it } from '@jest/globals';
import {
  type Agent,
  createAgent,
  createDemand,
  interruptOn,
  type Layer,
  on,
  openDemand,
  textBlock,
  tool,
} from 'millrace';
import { type MarbleHelpers, marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  delay,
  EMPTY,
  filter,
  map,
  merge,
  mergeMap,
  of,
  Subscription,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { type AgentSourceOptions, createAgentSource } from './agent-source.js';
import { type FeedLine, isChunkRun, isMark, type LogItem } from './page/protocol.js';

const weather = tool({ name: 'weather', description: 'The weather.', run: () => 'Sunny' });

const slow = (ms: number) =>
  tool({
    name: 'slow',
    description: 'Takes its time.',
    run: (_, { scheduler }) => timer(ms, scheduler).pipe(map(() => 'Done')),
  });

const hello: FeedLine = {
  line: 'hello',
  title: 'test',
  source: 'agents',
  holdable: [],
  breakpoints: [],
};

/** Devtools with an open page, in virtual time. */
const opened = (options: AgentSourceOptions = {}) => {
  const running = new Subscription();
  const { source, inspect, running$ } = createAgentSource(options);
  const lines: FeedLine[] = [];
  running.add(running$.subscribe());
  const page = source.hub.page$(hello, openDemand).subscribe((batch) => lines.push(...batch));
  running.add(page);
  const log = (): readonly LogItem[] =>
    [...source.hub.logs.values()].flatMap((each) => each.slice(0, Infinity));
  return { source, inspect, lines, log, page, hub: source.hub };
};

const marksOf = (log: readonly LogItem[], kind: string): readonly string[] =>
  log.flatMap((item) => {
    if (!isMark(item) || item.mark !== kind) return [];
    switch (item.mark) {
      case 'step':
        return [`${item.id} ${item.phase} ${item.at}`];
      case 'request':
        return [`${item.messageId.split('/').slice(1).join('/')} ${item.phase} ${item.at}`];
      case 'demand':
        return [`${item.isOpen ? 'open' : 'closed'} ${item.at}`];
      case 'interceptors':
        return [`${item.of} ${item.phase}${item.isEdited === true ? ' edited' : ''} ${item.at}`];
      case 'hold':
        return [`${item.of} ${item.phase} ${item.at} ${item.heldMs ?? ''}`.trim()];
    }
  });

/** Runs a call to its end in virtual time, then looks. */
const ran = (
  { expectObservable, flush }: MarbleHelpers,
  agent: Agent,
  options: Parameters<Agent['call$']>[1] = {},
) => {
  expectObservable(agent.call$('Hi', { callId: 'c', ...options }).pipe(filter(() => false)));
  flush();
};

describe('an inspected call', () => {
  it('marks the subscriptions to its steps and requests, with those that run in parallel', () => {
    marbles((helpers) => {
      const { inspect, log } = opened();
      const model = helpers.model(['3ms (abf|)', '3ms (tf|)'], {
        a: toolCall('slow'),
        b: toolCall('weather'),
      });
      ran(helpers, inspect(createAgent({ model, tools: [slow(10), weather] })));
      expect(marksOf(log(), 'step')).toEqual([
        ...['open started 0', 'open ended 0', '1 started 0', '1 ended 3'],
        ...['1/0/intent started 3', '1/0/intent ended 3', '1/0 started 3'],
        ...['1/1/intent started 3', '1/1/intent ended 3', '1/1 started 3', '1/1 ended 3'],
        ...['1/0 ended 13', '2 started 13', '2 ended 16', 'reply started 16', 'reply ended 16'],
      ]);
      const requests = ['1 started 0', '1 ended 3', '2 started 13', '2 ended 16'];
      expect(marksOf(log(), 'request')).toEqual(requests);
    });
  });

  it('keeps runs of deltas together', () => {
    marbles((helpers) => {
      const { inspect, log } = opened();
      const model = helpers.model('htttt(f|)');
      ran(helpers, inspect(createAgent({ model })));
      const runs = log().filter(isChunkRun);
      expect(runs).toMatchObject([
        { kind: 'thinking', ats: [0], deltas: ['h'] },
        { kind: 'text', ats: [1, 2, 3, 4], deltas: ['t', 't', 't', 't'], messageId: 'c/1' },
      ]);
    });
  });

  it('marks how long interceptors take, and whether they edit or veto', () => {
    marbles((helpers) => {
      const { inspect, log } = opened();
      const model = helpers.model(['(abf|)', '(tf|)'], {
        a: toolCall('weather', {}, 'one'),
        b: toolCall('weather', {}, 'two'),
      });
      const use = [
        on('preActing', (event$) =>
          event$.pipe(switchMap((event) => (event.toolCall.id === 'two' ? EMPTY : of(event)))),
        ),
        on('postReasoning', delay(20)),
        on(
          'postCall',
          map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock('Edited')] } })),
        ),
      ];
      ran(helpers, inspect(createAgent({ model, tools: [weather], use })));
      expect(marksOf(log(), 'interceptors')).toEqual([
        ...['postReasoning started 0', 'postReasoning ended 20'],
        ...['preActing started 20', 'preActing ended 20'],
        ...['preActing started 20', 'preActing vetoed 20'],
        ...['postReasoning started 20', 'postReasoning ended 40'],
        ...['postCall started 40', 'postCall ended edited 40'],
      ]);
    });
  });

  it('marks what an interrupt cuts, and what is cancelled', () => {
    marbles((helpers) => {
      const { inspect, log } = opened();
      const model = helpers.model('t 99ms (f|)');
      const cut = createAgent({ model, use: [interruptOn(timer(30))] });
      ran(helpers, inspect(cut));
      expect(marksOf(log(), 'step').slice(2, 4)).toEqual(['1 started 0', '1 cut 30']);
      expect(marksOf(log(), 'request')).toEqual(['1 started 0', '1 cancelled 30']);
    });
    marbles((helpers) => {
      const { inspect, log } = opened();
      const agent = inspect(createAgent({ model: helpers.model('t 99ms (f|)') }));
      helpers.expectObservable(
        agent.stream$('Hi', { callId: 'c' }).pipe(filter(() => false)),
        '^ 9ms !',
      );
      helpers.flush();
      expect(marksOf(log(), 'step').slice(2)).toEqual(['1 started 0', '1 cancelled 10']);
    });
  });

  it('marks when the demand of its consumers closes, and opens', () => {
    marbles((helpers) => {
      const { inspect, log } = opened();
      const demand = createDemand(2);
      const agent = inspect(createAgent({ model: helpers.model('t 99ms (f|)') }));
      const level$ = merge(
        timer(10).pipe(tap(() => demand.backlog(2))),
        timer(40).pipe(tap(() => demand.backlog(0))),
      );
      helpers.expectObservable(level$.pipe(filter(() => false)));
      ran(helpers, agent, { demand });
      expect(marksOf(log(), 'demand')).toEqual(['closed 10', 'open 40']);
    });
  });

  it('is the call of the agent itself without a page, and one of a sub-agent is inspected once', () => {
    marbles((helpers) => {
      const seen: (readonly string[])[] = [];
      const looking: Layer = {
        name: 'looking',
        inherit: true,
        record: ({ layers }) => {
          seen.push(layers.map(({ name }) => name).filter((name) => name.startsWith('devtools')));
          return (call$) => call$;
        },
      };
      const { inspect, page, log } = opened();
      const inner = inspect(
        createAgent({ name: 'inner', model: scriptedModel([text('a')], [text('b')]) }),
      );
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_, parent) => inner.call$('?', { parent }).pipe(map((reply) => reply.text)),
      });
      const answers = () => [[toolCall('ask')], [text('Done.')]] as const;
      const model = scriptedModel(...answers(), ...answers());
      const agent = inspect(createAgent({ model, tools: [ask], use: [looking] }));
      ran(helpers, agent);
      expect(seen).toEqual([
        ['devtools', 'devtools'],
        ['devtools', 'devtools'],
      ]);
      const seqs = log().flatMap((item) => ('seq' in item ? [item.seq] : []));
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      page.unsubscribe();
      // The page may only be reloaded: for a while, calls are still inspected.
      helpers.expectObservable(
        timer(6_000).pipe(
          switchMap(() => agent.call$('Hi')),
          filter(() => false),
        ),
      );
      helpers.flush();
      expect(seen.slice(2)).toEqual([[], []]);
    });
  });
});

describe('a breakpoint', () => {
  /** Answers each hold, after a while, as a person would. */
  const answering = (
    { hub }: Pick<ReturnType<typeof opened>, 'hub'>,
    helpers: MarbleHelpers,
    ms: number,
    act: (id: string) => void,
  ): void => {
    const answered$ = timer(1, ms).pipe(
      tap(() => hub.holds.current.forEach(({ id }) => act(id))),
      filter(() => false),
    );
    helpers.expectObservable(answered$, `^ ${ms * 10}ms !`);
  };

  it('holds the loop, while the time-outs of the call and its tools stand still', () => {
    marbles((helpers) => {
      const tools = opened();
      const { inspect, log, hub } = tools;
      hub.holds.set([{ type: 'preActing' }, { type: 'postReasoning', text: 'no such text' }]);
      const model = helpers.model(['5ms (af|)', '5ms (tf|)'], { a: toolCall('slow') });
      const agent = createAgent({
        model,
        tools: [slow(10)],
        limits: { timeouts: { callMs: 50, toolMs: 20, iterationMs: 30 } },
      });
      answering(tools, helpers, 1_000, (id) => hub.holds.act(id, { action: 'continue' }));
      ran(helpers, inspect(agent));
      expect(log().at(-1)).toMatchObject({ type: 'postCall', reply: { text: 't', elapsedMs: 20 } });
      expect(marksOf(log(), 'hold')).toEqual(['preActing held 5', 'preActing continued 5 996']);
    });
  });

  it('edits an event: the edit reaches the tool and what is recorded, as that of an interceptor', () => {
    marbles((helpers) => {
      const tools = opened();
      const { inspect, log, hub } = tools;
      hub.holds.set([{ type: 'preActing' }]);
      const echo = tool({
        name: 'echo',
        description: 'Echoes.',
        input: undefined as never,
        run: (given: unknown) => JSON.stringify(given),
      });
      const model = helpers.model(['(af|)', '(tf|)'], { a: toolCall('echo', { a: 1 }) });
      answering(tools, helpers, 10, (id) => {
        const [hold] = hub.holds.current;
        const given: Record<string, unknown> = { ...hold?.event, callId: 'other', seq: 99 };
        hub.holds.act(id, {
          action: 'continue',
          event: { ...given, toolCall: { ...(given['toolCall'] as object), input: { a: 2 } } },
        });
      });
      ran(helpers, inspect(createAgent({ model, tools: [echo] })));
      const acted = log().find((item) => 'type' in item && item.type === 'postActing');
      expect(acted).toMatchObject({ callId: 'c', toolCall: { input: { a: 2 } } });
      expect(marksOf(log(), 'hold').at(-1)).toMatch(/^preActing edited/);
    });
  });

  it('vetoes an event, and refuses an edit that does not fit', () => {
    marbles((helpers) => {
      const tools = opened();
      const { inspect, log, hub } = tools;
      hub.holds.set([{ type: 'postActing' }]);
      const model = helpers.model(['(af|)', '(tf|)'], { a: toolCall('weather') });
      answering(tools, helpers, 10, (id) => {
        const act = (event: object) => () =>
          hub.holds.act(id, { action: 'continue', event: { ...event } });
        expect(act({ result: { content: 'x' } })).toThrow(/'result' needs a 'content'/);
        expect(act({ toolCall: { name: 1 } })).toThrow(/'toolCall' needs a 'name'/);
        hub.holds.act(id, { action: 'veto' });
        expect(() => hub.holds.act(id, { action: 'veto' })).toThrow(/no longer held/);
      });
      ran(helpers, inspect(createAgent({ model, tools: [weather] })));
      const vetoed = log().find((item) => 'type' in item && item.type === 'vetoed');
      expect(vetoed).toMatchObject({ of: 'postActing', name: 'devtools' });
      expect(marksOf(log(), 'hold').at(-1)).toBe('postActing vetoed 0 1');
    });
  });

  it('steps to the next event of the call', () => {
    marbles((helpers) => {
      const tools = opened();
      const { inspect, log, hub } = tools;
      hub.holds.set([{ type: 'preActing' }]);
      const model = helpers.model(['(af|)', '(tf|)'], { a: toolCall('weather') });
      const steps = ['step', 'step', 'continue'] as const;
      let count = 0;
      answering(tools, helpers, 10, (id) => {
        hub.holds.act(id, { action: steps[count] ?? 'continue' });
        count += 1;
      });
      ran(helpers, inspect(createAgent({ model, tools: [weather] })));
      const held = marksOf(log(), 'hold').filter((mark) => mark.includes(' held '));
      expect(held).toEqual(['preActing held 0', 'postActing held 0', 'preReasoning held 0']);
    });
  });

  it('lets everything go once the last page has been closed for five seconds', () => {
    marbles((helpers) => {
      const { inspect, log, hub, page } = opened();
      hub.holds.set([{ type: 'preReasoning' }]);
      helpers.expectObservable(
        timer(100).pipe(
          tap(() => page.unsubscribe()),
          filter(() => false),
        ),
      );
      ran(helpers, inspect(createAgent({ model: helpers.model('(tf|)') })));
      expect(marksOf(log(), 'hold')).toEqual([
        'preReasoning held 0',
        'preReasoning continued 0 5100',
      ]);
      expect(hub.holds.breakpoints).toEqual([]);
    });
  });

  it('is released by an interrupt of its call', () => {
    marbles((helpers) => {
      const { inspect, log, hub, source } = opened();
      hub.holds.set([{ type: 'postReasoning' }]);
      const interrupted$ = timer(20).pipe(
        tap(() => source.interrupt('c', 'Enough.')),
        filter(() => false),
      );
      helpers.expectObservable(interrupted$);
      ran(helpers, inspect(createAgent({ model: helpers.model('(tf|)') })));
      expect(marksOf(log(), 'hold').at(-1)).toBe('postReasoning continued 0 20');
      expect(hub.logs.get('c')?.isOver).toBe(true);
    });
  });

  it('keeps what ids say, and refuses edits that would break the call', () => {
    marbles((helpers) => {
      const tools = opened();
      const { inspect, log, hub } = tools;
      hub.holds.set([{ type: 'postReasoning' }, { type: 'preActing' }, { type: 'postActing' }]);
      const model = helpers.model(['(af|)', '(tf|)'], { a: toolCall('weather', {}, 'w') });
      answering(tools, helpers, 10, (id) => {
        const { event } = hub.holds.current.find((hold) => hold.id === id) ?? {};
        const act = (edit: object) => hub.holds.act(id, { action: 'continue', event: { ...edit } });
        if (event?.type === 'postReasoning') {
          expect(() => act({ usage: null })).toThrow(/'usage' must have numbers/);
          expect(() => act({ finish: 5 })).toThrow(/'finish' must be one of/);
          hub.holds.act(id, { action: 'continue' });
        }
        if (event?.type === 'preActing') act({ toolCall: { name: 'weather', input: { a: 1 } } });
        if (event?.type === 'postActing')
          act({ result: { toolCallId: 'x', isError: false, content: [textBlock('Wet')] } });
      });
      ran(helpers, inspect(createAgent({ model, tools: [weather] })));
      expect(log().at(-1)).toMatchObject({
        type: 'postCall',
        reply: { reason: 'answer', toolCalls: [{ output: 'Wet' }] },
      });
    });
  });

  it('is cancelled with its call', () => {
    marbles((helpers) => {
      const { inspect, log, hub } = opened();
      hub.holds.set([{ type: 'preReasoning' }]);
      const agent = inspect(createAgent({ model: helpers.model('(tf|)') }));
      helpers.expectObservable(agent.call$('Hi', { callId: 'c' }), '^ 9ms !').toBe('-');
      helpers.flush();
      expect(hub.holds.current).toEqual([]);
      expect(marksOf(log(), 'hold').at(-1)).toBe('preReasoning cancelled 0 10');
    });
  });
});

describe('a feed', () => {
  it('sends batches, no more than 60 a second, and nothing while its page does not read', () => {
    marbles((helpers) => {
      const { source, inspect, watchedFor } = { ...opened(), watchedFor: 400 };
      const demand = createDemand(1);
      const batches: number[] = [];
      const reading$ = source.hub.page$(hello, demand).pipe(
        tap((lines) => {
          batches.push(lines.length);
          demand.backlog(batches.length === 3 ? 1 : 0);
        }),
        filter(() => false),
      );
      helpers.expectObservable(reading$, `^ ${watchedFor}ms !`);
      ran(helpers, inspect(createAgent({ model: helpers.model(`${'t'.repeat(300)}(f|)`) })));
      expect(batches).toHaveLength(3);
    });
  });

  it('sends long logs in order, and again when asked', () => {
    marbles((helpers) => {
      const { source, inspect, page } = opened();
      page.unsubscribe();
      const other = source.hub.page$(hello, openDemand).subscribe();
      ran(helpers, inspect(createAgent({ model: helpers.model(`(${'t'.repeat(9_000)}f|)`) })));
      const demand = createDemand(1);
      const froms: number[] = [];
      const reading$ = source.hub.page$(hello, demand).pipe(
        tap((lines) => {
          froms.push(...lines.flatMap((line) => (line.line === 'log' ? [line.from] : [])));
          // As a socket that is written to in its own time.
          demand.backlog(1);
          helpers.scheduler.schedule(() => demand.backlog(0), 5);
        }),
        filter(() => false),
      );
      helpers.expectObservable(reading$, '^ 299ms !');
      helpers.expectObservable(timer(200).pipe(mergeMap(() => source.open$('c'))));
      helpers.flush();
      other.unsubscribe();
      const once = [0, 2_000, 4_000, 6_000, 8_000];
      expect(froms).toEqual([...once, ...once]);
    });
  });

  it('shows what a log has, wherever a page begins', () => {
    marbles((helpers) => {
      const { source, inspect, lines } = opened();
      ran(helpers, inspect(createAgent({ model: helpers.model('tt--tt(f|)') })));
      const late: FeedLine[] = [];
      source.hub
        .page$(hello, openDemand)
        .subscribe((batch) => late.push(...batch))
        .unsubscribe();
      const textIn = (all: readonly FeedLine[]): string =>
        all
          .flatMap((line) => (line.line === 'log' ? line.items : []))
          .flatMap((item) => (isChunkRun(item) ? item.deltas : []))
          .join('');
      expect(textIn(late)).toBe('tttt');
      expect(textIn(lines)).toBe('tttt');
    });
  });
});

describe('the devtools of a process', () => {
  it('keep no timer before the first page', () => {
    marbles(({ scheduler }) => {
      const { running$ } = createAgentSource({});
      const running = running$.subscribe();
      expect(scheduler.actions).toEqual([]);
      running.unsubscribe();
    });
  });

  it('stop inspecting when they are closed', () => {
    marbles((helpers) => {
      const { source, inspect, running$ } = createAgentSource({ keepOpen: true });
      const running = running$.subscribe();
      const agent = inspect(createAgent({ model: helpers.model(['(tf|)', '(tf|)']) }));
      ran(helpers, agent);
      expect(source.hub.logs.size).toBe(1);
      running.unsubscribe();
      expect(source.hub.logs.size).toBe(0);
      ran(helpers, agent, { callId: 'd' });
      expect(source.hub.logs.size).toBe(0);
    });
  });

  it('end and forget the calls of a sub-agent whose parent they do not know', () => {
    marbles((helpers) => {
      const { inspect, hub } = opened();
      const answers = Array.from({ length: 60 }, () => [text('Hi.')]);
      const inner = inspect(createAgent({ name: 'inner', model: scriptedModel(...answers) }));
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_, parent) => inner.call$('?', { parent }).pipe(map((reply) => reply.text)),
      });
      for (let index = 0; index < 60; index += 1) {
        const model = scriptedModel([toolCall('ask')], [text('Done.')]);
        ran(helpers, createAgent({ model, tools: [ask] }), { callId: `c${index}` });
      }
      const logs = [...hub.logs.values()];
      expect(logs).toHaveLength(50);
      expect(new Set(logs.map(({ entry }) => entry.status))).toEqual(new Set(['done']));
    });
  });

  it('end the log of a call that ends without a viewer', () => {
    marbles((helpers) => {
      const { inspect, hub, page } = opened();
      const agent = inspect(createAgent({ model: helpers.model('t 19999ms (f|)') }));
      helpers.expectObservable(
        timer(10).pipe(
          tap(() => page.unsubscribe()),
          filter(() => false),
        ),
      );
      ran(helpers, agent);
      expect(hub.logs.get('c')).toMatchObject({ isOver: true, entry: { status: 'stopped' } });
    });
  });

  it('show an event whose JSON fails, and hold another one by its text', () => {
    marbles((helpers) => {
      const { inspect, hub, log } = opened();
      const broken = {
        toJSON: () => {
          throw new Error('no JSON');
        },
      };
      hub.holds.set([{ type: 'postCall', text: 'never' }]);
      const use = [
        on(
          'postCall',
          map((event) => ({ ...event, reply: { ...event.reply, output: broken as never } })),
        ),
      ];
      ran(helpers, inspect(createAgent({ model: helpers.model('(tf|)'), use })));
      expect(log().at(-1)).toMatchObject({ type: 'postCall', unreadable: true });
      expect(hub.logs.get('c')?.entry.status).toBe('done');
    });
  });

  it('show the other events if one cannot be shown', () => {
    marbles((helpers) => {
      const { inspect, hub, lines } = opened();
      const use = [
        on(
          'postReasoning',
          map((event) => ({ ...event, usage: { ...event.usage, inputTokens: null as never } })),
        ),
      ];
      ran(helpers, inspect(createAgent({ model: helpers.model('(tf|)'), use })));
      expect(hub.logs.get('c')?.isOver).toBe(true);
      expect(lines.length).toBeGreaterThan(0);
    });
  });
});

it('names the step of the queue of a session, not as journals keep it', async () => {
  const { inspect, log } = opened();
  const queued: Layer = {
    name: 'queued',
    call:
      ({ perform }) =>
      (next) =>
      (call) =>
        perform({ kind: 'seat', id: 'queue', input: undefined, run: () => of('seated') }).pipe(
          switchMap(() => next(call)),
        ),
  };
  const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [queued] });
  await inspect(agent).call('Hello');
  const kinds = log().flatMap((item) => (isMark(item) && item.mark === 'step' ? [item.kind] : []));
  expect(kinds).toContain('queue');
  expect(kinds).not.toContain('seat');
});
