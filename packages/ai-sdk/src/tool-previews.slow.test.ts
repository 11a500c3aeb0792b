import { createXai } from '@ai-sdk/xai';
import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type AgentEvent, createAgent, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { cost } from 'millrace/traffic';
import { lastValueFrom, toArray } from 'rxjs';
import { ask, closeServers, type Make, oslo } from './ask.test-support.js';
import { aiSdkModel } from './index.js';
import { call, finish, playParts, preview, text } from './parts.test-support.js';
import {
  completed,
  itemAdded,
  itemDone,
  messageItem,
  response,
  textDelta,
} from './wire-events.test-support.js';

afterEach(closeServers);

const input = jsonSchema({ type: 'object', additionalProperties: true });

/** Plays parts to an agent with the tools `add` and `drop`, then `Done.` */
const run = async (parts: readonly unknown[]) => {
  const runs: unknown[] = [];
  const model = playParts([parts, [...text('t', 'Done.'), finish()]]);
  const tools = ['add', 'drop'].map((name) =>
    tool({ name, description: name, input, run: (given) => (runs.push([name, given]), 'ok') }),
  );
  const agent = createAgent({ model: aiSdkModel(model, { retry: false }), tools });
  const ended = await lastValueFrom(agent.stream$('Hi!').pipe(toArray())).then(
    (events) => ({ events, error: undefined }),
    (error: unknown) => ({ events: [], error }),
  );
  return { runs, model, ...ended };
};

const server = { providerExecuted: true };

const replyIn = (events: readonly AgentEvent[]) =>
  events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []))[0];

describe('a preview of a tool call', () => {
  it('does not decide who runs the tool: that of a vendor, of the same name, does not run here', async () => {
    for (const name of ['web_search', 'add']) {
      const { runs, model, error, events } = await run([
        ...text('1', 'I look.'),
        ...preview('c1', name, '{"q":"x"}'),
        call('c1', name, '{"q":"x"}', server),
        ...text('2', 'It snows.'),
        finish(),
      ]);
      expect({ runs, error, asked: model.asked.length }).toEqual({ runs: [], error, asked: 1 });
      const last = replyIn(events);
      expect(last?.content).toMatchObject([
        { type: 'text', text: 'I look.' },
        { type: 'vendor', kind: 'tool-call', data: { toolCallId: 'c1', toolName: name } },
        { type: 'text', text: 'It snows.' },
      ]);
    }
  });

  it('does not decide on the name, and the message is emitted again without it', async () => {
    const { runs, events } = await run([
      ...text('1', 'Now.'),
      ...preview('c1', 'drop', '{}'),
      call('c1', 'add', '{}'),
      finish('tool-calls'),
    ]);
    expect(runs).toEqual([['add', {}]]);
    const calls = events.flatMap((it) => (it.type === 'preActing' ? [it.toolCall] : []));
    expect(calls).toMatchObject([{ id: 'c1', name: 'add' }]);
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toHaveLength(1);
  });

  it('of another tool than those of the request is not emitted', async () => {
    const { events } = await run([
      ...preview('c1', 'web_search', '{"q":"x"}'),
      call('c1', 'web_search', '{"q":"x"}', server),
      ...text('1', 'It snows.'),
      finish(),
    ]);
    const shown = events.filter((it) => it.type === 'reasoningChunk' && it.kind === 'toolInput');
    expect(shown).toEqual([]);
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toEqual([]);
  });

  it('does not decide on the arguments, also if the whole call has none', async () => {
    const whole = { type: 'tool-call', toolCallId: 'c1', toolName: 'add' };
    const { runs } = await run([...preview('c1', 'add', '{"a":1}'), whole, finish()]);
    expect(runs).toEqual([['add', {}]]);
  });

  it('is withdrawn if the answer is cut off', async () => {
    const { runs, events } = await run([
      ...text('1', 'Now.'),
      ...preview('c1', 'drop', '{"a":1}'),
      finish('length'),
    ]);
    expect(runs).toEqual([]);
    const last = replyIn(events);
    expect(last).toMatchObject({ reason: 'truncated', toolCalls: [] });
    expect(last?.content).toMatchObject([{ type: 'text', text: 'Now.' }]);
  });
});

describe('the tools that run', () => {
  const ids = fc.constantFrom('', 'a', 'b');
  const names = fc.constantFrom('add', 'drop', 'add', 'web_search');
  const inputs = fc.constantFrom('{"n":1}', '{"n":2}', '{}');
  const flag = fc.constantFrom({}, {}, server, { providerExecuted: false });
  const startPart = fc
    .tuple(ids, names, flag)
    .map(([id, toolName, more]) => ({ type: 'tool-input-start', id, toolName, ...more }));
  const callPart = fc
    .tuple(ids, names, inputs, flag)
    .map(([toolCallId, toolName, given, more]) => ({
      ...{ type: 'tool-call', toolCallId, toolName, input: given },
      ...more,
    }));
  const callOfPreview = fc
    .tuple(ids, names, inputs, flag, names, inputs, flag)
    .map(([id, name, delta, more, other, given, last]) => [
      { type: 'tool-input-start', id, toolName: name, ...more },
      { type: 'tool-input-delta', id, delta },
      { type: 'tool-input-end', id },
      { type: 'tool-call', toolCallId: id, toolName: other, input: given, ...last },
    ]);
  const single = fc.oneof(
    { weight: 1, arbitrary: startPart },
    { weight: 12, arbitrary: callPart },
    fc.tuple(ids, inputs).map(([id, delta]) => ({ type: 'tool-input-delta', id, delta })),
    ids.map((id) => ({ type: 'tool-input-end', id })),
    fc.tuple(ids, names, fc.boolean()).map(([toolCallId, toolName, preliminary]) => ({
      ...{ type: 'tool-result', toolCallId, toolName, result: 'r' },
      preliminary,
    })),
    fc.constant({ type: 'text-delta', id: 't', delta: 'Hm.' }),
  );
  const answer = fc
    .array(
      fc.oneof(
        callOfPreview,
        single.map((it) => [it]),
      ),
      { minLength: 1, maxLength: 6 },
    )
    .map((lists) => lists.flat() as Part[]);

  interface Part {
    readonly type: string;
    readonly id?: string;
    readonly toolCallId?: string;
    readonly toolName?: string;
    readonly input?: string;
    readonly providerExecuted?: boolean;
  }

  const sorted = (runs: readonly unknown[]): readonly string[] =>
    runs.map((it) => JSON.stringify(it)).sort();

  const areParallel = (several: readonly Part[]): boolean => {
    const names = new Set(several.map(({ toolName }) => toolName));
    const isLocal = several.every(({ providerExecuted }) => providerExecuted !== true);
    const areWhole = several.every(({ input }) => input !== '{}') || names.size === several.length;
    return several.length === 1 || (isLocal && areWhole);
  };

  /**
   * The whole, local calls, once each, unless one with the same id may be a preview, or ran at the provider; `undefined` if the answer
   * is broken. They run in the order of their previews.
   */
  const expected = (parts: readonly Part[], unified: string): readonly unknown[] | undefined => {
    const open = new Map<unknown, boolean>();
    const calls = new Map<string, Part>();
    const byId = new Map<unknown, Map<string, Part>>();
    for (const [place, part] of parts.entries()) {
      if (part.type === 'tool-input-start') open.set(part.id, part.providerExecuted !== true);
      if (part.type === 'tool-input-delta' && !open.has(part.id)) return undefined;
      if (part.type !== 'tool-call') continue;
      open.delete(part.toolCallId);
      const { toolCallId, toolName, input: given, providerExecuted = false } = part;
      const id = toolCallId || place;
      const what = JSON.stringify([toolName, given, providerExecuted]);
      byId.set(id, (byId.get(id) ?? new Map()).set(what, part));
      const key = JSON.stringify([id, what]);
      if (!providerExecuted && !calls.has(key)) calls.set(key, { ...part, id: String(id) });
    }
    if (unified === 'length') return [];
    if ([...open.values()].includes(true)) return undefined;
    const own = [...byId].flatMap(([id, whats]) =>
      areParallel([...whats.values()]) ? [String(id)] : [],
    );
    return [...calls.values()]
      .filter(({ toolName, id = '' }) => toolName !== 'web_search' && own.includes(id))
      .map((it) => [it.toolName, JSON.parse(it.input ?? '')]);
  };

  it('are those of the whole, local calls, once each, in any order and mixture of parts', async () => {
    const finishes = fc.constantFrom('stop', 'tool-calls', 'stop', 'length');
    let ran = 0;
    await fc.assert(
      fc.asyncProperty(answer, finishes, async (parts, unified) => {
        const wanted = expected(parts, unified);
        const { runs } = await run([...parts, finish(unified)]);
        expect(sorted(runs)).toEqual(sorted(wanted ?? []));
        ran += runs.length;
      }),
      { numRuns: 300 },
    );
    expect(ran).toBeGreaterThan(5);
  });

  it('do not include one that the answer repeats, in any form of its JSON', async () => {
    const input = { a: 1, list: [{ b: 2, c: 3 }] };
    const forms = [
      JSON.stringify(input),
      JSON.stringify(input, null, 2),
      '{"list":[{"c":3,"b":2}],"a":1}',
      input,
    ];
    for (const one of forms) {
      for (const other of forms) {
        const twice = [one, other].map((it) => call('c1', 'add', '', { input: it }));
        expect((await run([...twice, finish()])).runs).toEqual([['add', input]]);
      }
    }
    const none = [call('c1', 'add', '{}'), call('c1', 'add', '')];
    expect((await run([...none, finish()])).runs).toEqual([['add', {}]]);
  });

  it('X7: include parallel calls with one id or none, and none if one may be a preview or ran', async () => {
    const two = ['{"a":1}', '{"a":2}'];
    for (const id of ['', 'c1']) {
      const parallel = two.map((given) => call(id, 'add', given));
      expect((await run([...parallel, finish()])).runs).toHaveLength(2);
    }
    const others = [
      [call('c1', 'add', '{}'), call('c1', 'add', '{"a":1}')],
      [call('c1', 'add', '{}'), call('c1', 'add', '{}', server)],
      [call('c1', 'add', '{}', server), call('c1', 'add', '{}')],
      [...preview('c1', 'add', '{}'), call('c1', 'add', '{}'), call('c1', 'web', '{}', server)],
    ];
    for (const parts of others) {
      const { runs, events } = await run([...parts, finish()]);
      expect(runs).toEqual([]);
      const refused = replyIn(events)?.toolCalls ?? [];
      expect(refused.length).toBeGreaterThan(0);
      for (const { output } of refused) expect(output).toMatch(/same id/);
    }
  });
});

describe('the Responses API of xAI', () => {
  const grok: Make = (baseURL) => createXai({ apiKey: 'test', baseURL }).responses('grok-4');
  const said = [
    itemAdded(1, messageItem('m1', { status: 'completed' })),
    textDelta('m1', 1, 'It snows.'),
    itemDone(1, messageItem('m1', { status: 'completed' })),
  ];

  it.each([
    { type: 'web_search_call', name: 'web_search', arguments: oslo },
    { type: 'custom_tool_call', name: 'x_keyword_search', input: oslo, call_id: 'c1' },
    { type: 'file_search_call', queries: ['x'], results: null },
    { type: 'mcp_call', name: 'weather', arguments: oslo, server_label: 's' },
  ])('runs its own tools itself: $type', async (item) => {
    const whole = { id: 'w1', status: 'completed', ...item };
    const list = [itemAdded(0, { ...whole, status: 'in_progress' }), itemDone(0, whole), ...said];
    const {
      reply,
      error,
      runs,
      server: vendor,
    } = await ask(grok, [response(...list, completed())]);
    expect(error).toBeUndefined();
    expect(runs).toEqual([]);
    expect(vendor.bodies).toHaveLength(1);
    expect(reply && textOf(reply)).toBe('It snows.');
    expect(reply?.toolCalls).toEqual([]);
  });

  it('calls yours', async () => {
    const item = { type: 'function_call', id: 'f1', call_id: 'c1', name: 'weather' };
    const { runs, error } = await ask(grok, [
      response(
        itemAdded(0, { ...item, arguments: '', status: 'in_progress' }),
        itemDone(0, { ...item, arguments: oslo, status: 'completed' }),
        completed(),
      ),
      response(...said, completed()),
    ]);
    expect(error).toBeUndefined();
    expect(runs).toEqual([{ city: 'Oslo', days: 1 }]);
  });
});

describe('the cost of an answer', () => {
  it('that fails at its end counts', async () => {
    const use = [
      cost({ currency: 'USD', date: '2026-11-30', prices: { '*': { input: 1, output: 1 } } }),
    ];
    const model = playParts([[finish('error')], [...text('1', 'Yes.'), finish()]]);
    const reply = await createAgent({
      model: aiSdkModel(model, { retry: { minMs: 0 } }),
      use,
    }).call('Hi!');
    expect(model.asked).toHaveLength(2);
    expect(reply.usage).toMatchObject({ inputTokens: 12, outputTokens: 10 });
    expect(reply.cost?.total).toBeGreaterThan(0);
  });
});
