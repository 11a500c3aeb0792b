import {
  type AgentEvent,
  type Block,
  createAgent,
  inProcessMemory,
  interruptOn,
  type Message,
  type MillraceError,
  type Model,
  output,
  textOf,
  tool,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { finish, marbles, record, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import { describe, expect, it } from '@jest/globals';
import { catchError, lastValueFrom, map, of } from 'rxjs';
import { dialects } from './reading.test-support.js';
import type { DialectName } from './corpus/sample.test-support.js';
import { textTools } from './text-tools.js';

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  run: ({ city }: { city: string }) => `Sunny in ${city}`,
});
const tools = [weather];

/** A thought with a use of the tool, then the answer, as each dialect writes them. */
const scripts: Readonly<Record<DialectName, readonly [string, string]>> = {
  action: [
    'Thought: look\nAction: {"tool": "weather", "inputs": {"city": "Rome"}}',
    'Thought: known\nAction: {"final_answer": "It is sunny."}',
  ],
  flat: [
    '{"scratchpad": "look", "tool": "weather", "arguments": {"city": "Rome"}}',
    '{"scratchpad": "known", "answer": "It is sunny."}',
  ],
  steps: [
    'look\n[{"name": "weather", "arguments": {"city": "Rome"}}]',
    'known\n[{"name": "complete_task", "arguments": {"answer": "It is sunny."}}]',
  ],
  lines: [
    'Thought: look\nAction: weather\nAction Input: {"city": "Rome"}',
    'Thought: known\nFinal Answer: It is sunny.',
  ],
};
const names = Object.keys(scripts) as readonly DialectName[];

const pieces = (it: string) => (it.match(/[^]{1,7}/g) ?? []).map((piece) => text(piece));

const saying = (...replies: readonly string[]) =>
  scriptedModel(...replies.map((reply) => pieces(reply)));

const lastText = (messages: readonly Message[] = []): string => {
  const last = messages.at(-1);
  return last === undefined ? '' : textOf(last);
};

describe('P1: an agent with textTools', () => {
  const run = async (model: Model) => {
    const memory = inProcessMemory();
    const agent = createAgent({ model, tools });
    const events = await record(
      sessions(agent, { memory }).open('s').stream$('How is Rome?', { callId: 'c' }),
    );
    const messages = await lastValueFrom(memory('s').load$());
    return { events, messages };
  };
  /** Events without deltas, whose form is the protocol's own, and without times. */
  const plain = (events: readonly AgentEvent[]): unknown =>
    JSON.parse(
      JSON.stringify(
        events.filter(({ type }) => type !== 'reasoningChunk'),
        (key, value: unknown) =>
          ['seq', 'at', 'ms', 'createdAt', 'elapsedMs'].includes(key) ? 0 : value,
      ),
    );

  it.each(names)('P1: %s gives the memory and the events of a native model', async (name) => {
    const inner = saying(...scripts[name]);
    const native = scriptedModel(
      [thinking('look'), toolCall('weather', { city: 'Rome' })],
      [thinking('known'), text('It is sunny.')],
    );
    const spoken = await run(textTools(inner, dialects[name]));
    const called = await run(native);
    expect(JSON.stringify(spoken.messages)).toContain('Sunny in Rome');
    expect(spoken.messages).toEqual(called.messages);
    expect(plain(spoken.events)).toEqual(plain(called.events));
    inner.verify();
    const [, second] = inner.requests;
    expect(second).not.toHaveProperty('tools');
    expect(second?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(second?.messages.flatMap<Block>(({ content }) => content)).toEqual([
      expect.objectContaining({ text: 'How is Rome?' }),
      { type: 'text', text: scripts[name][0].replace('"city": ', '"city":') },
      { type: 'text', text: 'Observation: Sunny in Rome' },
    ]);
  });

  it.each(names)('P1: %s gives the same deltas of thoughts and answers', async (name) => {
    const { events } = await run(textTools(saying(...scripts[name]), dialects[name]));
    const deltas = events.flatMap((event) =>
      event.type === 'reasoningChunk' ? [[event.kind, event.delta] as const] : [],
    );
    const joined = (kind: string) =>
      deltas.flatMap(([it, delta]) => (it === kind ? delta : [])).join('');
    expect(joined('thinking')).toBe('lookknown');
    expect(joined('text')).toBe('It is sunny.');
    expect(deltas.filter(([kind]) => kind === 'text').length).toBeGreaterThan(1);
  });

  it.each(names)('I7: a repair in %s is an iteration', async (name) => {
    const label = name === 'action' || name === 'lines' ? 'Action: ' : '';
    const broken = `${label}{"tool": "weather", "arguments": {"city": "Ro`;
    const model = saying(broken, ...scripts[name]);
    const agent = createAgent({ model: textTools(model, dialects[name]), tools });
    const reply = await agent.call('How is Rome?', { limits: { parseBackoffMs: 0 } });
    expect(textOf(reply)).toBe('It is sunny.');
    expect(reply.iterations).toBe(3);
    const [, second, third] = model.requests;
    expect(lastText(second?.messages)).toContain('incomplete');
    expect(third?.messages.map((message) => textOf(message)).join()).not.toContain('incomplete');
  });

  it('P4: prose is the answer once retries are used up', async () => {
    const wrong = 'Action: ask somebody';
    const agent = createAgent({
      model: textTools(saying(wrong, wrong), dialects.action),
      tools,
    });
    const reply = await agent.call('?', { limits: { maxParseRetries: 1, parseBackoffMs: 0 } });
    expect(textOf(reply)).toBe('ask somebody');
  });

  it('P4: garbage is an error with what was written', async () => {
    const wrong = '{"tool": "weather", "arg';
    const agent = createAgent({
      model: textTools(saying(wrong), dialects.flat),
      tools,
    });
    await expect(agent.call('?', { limits: { maxParseRetries: 0 } })).rejects.toMatchObject({
      code: 'invalidResponse',
      partial: wrong,
    });
  });

  const json = '{"tool": "weather", "inputs": {"city": "Rome"}}';
  const amongProse = [
    `Sure! Action: ${json}`,
    `Here is the tool call: ${json}`,
    `${'I think. '.repeat(40)}Action: ${json}`,
    `So:\n\`\`\`json\n${json.replace('tool', 'action')}\n\`\`\`\nThis asks for it.`,
  ];
  it.each(names.flatMap((name) => amongProse.map((said) => [name, said] as const)))(
    'P4: an action among prose is never the answer: %s, %s',
    async (name, said) => {
      for (const cuts of [[text(said)], [...said].map((piece) => text(piece))]) {
        const model = scriptedModel(cuts, ...scripts[name].map(pieces), pieces(scripts[name][1]));
        const agent = createAgent({ model: textTools(model, dialects[name]), tools });
        const events = await record(
          agent.stream$('How is Rome?', { limits: { parseBackoffMs: 0 } }),
        );
        const { reply } = events.findLast((event) => event.type === 'postCall') ?? {};
        expect(reply && textOf(reply)).toBe('It is sunny.');
        expect(reply?.toolCalls.map(({ output }) => output)).toEqual(['Sunny in Rome']);
      }
    },
  );

  it('P4: an action among prose is an error once retries are used up', async () => {
    const wrong = `Sure! Action: ${json}`;
    const model = textTools(saying(wrong), dialects.action);
    const reply = createAgent({ model, tools }).call('?', { limits: { maxParseRetries: 0 } });
    await expect(reply).rejects.toMatchObject({ code: 'invalidResponse', partial: wrong });
  });

  it.each([
    ['an unknown tool', json.replace('weather', 'fly')],
    ['arguments that do not fit', json.replace('"Rome"', '5')],
    ['arguments that are missing', json.replace('"city": "Rome"', '')],
  ])('P4: prose that mentions %s is the answer', async (_what, mentioned) => {
    const said = `You would write ${mentioned} for that.`;
    for (const name of names) {
      const agent = createAgent({ model: textTools(saying(said), dialects[name]), tools });
      expect(textOf(await agent.call('?'))).toBe(said);
    }
  });

  const long = 'I have thought about this for quite a while, and it is not easy. '.repeat(6).trim();
  it.each<readonly [DialectName, string]>([
    ['action', 'Action: {"final_answer": "It is 4."}'],
    ['action', '{"final_answer": "It is 4."}'],
    ['flat', '{"scratchpad": "So.", "answer": "It is 4."}'],
    ['flat', '```json\n{"answer": "It is 4."}\n```'],
    ['lines', '{"answer": "It is 4."}'],
    ['lines', 'Action: {"answer": "It is 4."}'],
    ['steps', '[{"name": "complete_task", "arguments": {"answer": "It is 4."}}]'],
    ['flat', '<__final_answer__>It is 4.</__final_answer__>'],
    ['lines', 'So: <__final_answer__>It is 4.</__final_answer__> Done.'],
  ])('P3: a long thought stays in no answer: %s, %s', async (name, said) => {
    const whole = `${long}\n${said}`;
    for (const cuts of [[text(whole)], pieces(whole), [...whole].map((piece) => text(piece))]) {
      const agent = createAgent({ model: textTools(scriptedModel(cuts), dialects[name]), tools });
      const events = await record(agent.stream$('?'));
      const { reply } = events.findLast((event) => event.type === 'postCall') ?? {};
      expect(reply && textOf(reply)).toBe('It is 4.');
      const discarded = events.findLastIndex(({ type }) => type === 'messageDiscarded');
      const left = events
        .slice(discarded + 1)
        .flatMap((event) =>
          event.type === 'reasoningChunk' && event.kind === 'text' ? event.delta : [],
        );
      expect(left.join('')).toBe('It is 4.');
    }
  });

  it('P6: a second action reaches the model as an observation', async () => {
    const two = `${scripts.action[0]}\nAction: {"tool": "weather", "inputs": {"city": "Oslo"}}`;
    const model = saying(two, scripts.action[1]);
    const events = await record(
      createAgent({ model: textTools(model, dialects.action), tools }).stream$('?'),
    );
    const told = lastText(model.requests[1]?.messages);
    expect(told).toContain('Observation: [weather 1] Sunny in Rome');
    expect(told).toContain('Not executed: one action per step.');
    expect(told).not.toContain('Oslo');
    expect(events.filter(({ type }) => type === 'postActing')).toHaveLength(2);
  });

  it('I3: an unknown tool is an observation that names the tools', async () => {
    const model = saying('Action: {"tool": "fly", "inputs": {}}', scripts.action[1]);
    await createAgent({ model: textTools(model, dialects.action), tools }).call('?');
    const told = lastText(model.requests[1]?.messages);
    expect(told).toMatch(/^Observation: Error: /);
    expect(told).toContain('weather');
  });

  it('P7: a thought alone continues, and stays in sight', async () => {
    const model = saying('{"scratchpad": "hm"}', ...scripts.flat);
    const reply = await createAgent({ model: textTools(model, dialects.flat), tools }).call('?');
    expect(textOf(reply)).toBe('It is sunny.');
    const [, second, third] = model.requests;
    expect(second?.messages.map((message) => textOf(message)).slice(1)).toEqual([
      '{"scratchpad":"hm"}',
      expect.stringMatching(/^Continue: /),
    ]);
    expect(third?.messages.some((message) => textOf(message).includes('"hm"'))).toBe(false);
  });

  it('I7: the closing call has no tools to use', async () => {
    const model = saying(scripts.lines[0], 'Final Answer: Sunny, so far.');
    const agent = createAgent({
      model: textTools(model, dialects.lines),
      tools,
    });
    const reply = await agent.call('?', { limits: { maxIterations: 1 } });
    expect(reply.reason).toBe('maxIterations');
    expect(textOf(reply)).toBe('Sunny, so far.');
    expect(model.requests[1]?.system).toContain('Do not use a tool now');
  });

  it('R3: structured output is asked for in the prompt', async () => {
    const schema = {
      type: 'object',
      properties: { answer: { type: 'string' }, sure: { type: 'boolean' } },
      required: ['answer', 'sure'],
    } as const;
    const direct = saying(scripts.flat[0], '{"answer": "sunny", "sure": true}');
    const wrapped = saying(scripts.flat[0], '{"answer": {"answer": "sunny", "sure": true}}');
    for (const model of [direct, wrapped]) {
      const agent = createAgent({ model: textTools(model, dialects.flat), tools });
      const reply = await agent.call('?', { use: [output(jsonSchema(schema))] });
      expect(reply.output).toEqual({ answer: 'sunny', sure: true });
      expect(model.requests[0]?.system).toContain(
        'must be JSON of this schema, and nothing else: {"type":"object"',
      );
      expect(model.requests[0]).not.toHaveProperty('outputSchema');
    }
  });

  it('P5: the temperature rises with each text that cannot be read', async () => {
    const broken = '{"tool": "weather", "arg';
    const model = saying(broken, broken, scripts.flat[1]);
    await createAgent({
      model: textTools(model, dialects.flat),
      tools,
    }).call('?', {
      request: { temperature: 0.1 },
      limits: { temperatureRamp: {}, parseBackoffMs: 0 },
    });
    const temperatures = model.requests.map(({ temperature = 0 }) => temperature.toFixed(1));
    expect(temperatures).toEqual(['0.1', '0.3', '0.5']);
  });
});

describe('what leaves the source', () => {
  it('an interrupt in the middle of an answer leaves it immediately', () => {
    marbles(({ model, cold, expectSubscriptions, expectObservable, scheduler }) => {
      const inner = model('--a-b-c-(df|)', {
        a: text('Final An'),
        b: text('swer: It'),
        c: text(' is'),
        d: text(' sunny'),
      });
      const agent = createAgent({ model: textTools(inner, dialects.lines), tools });
      const reply$ = agent.call$('?', { scheduler, use: [interruptOn(cold('-----x'))] });
      expectObservable(reply$.pipe(map(({ reason }) => reason))).toBe('-----(r|)', {
        r: 'interrupted',
      });
      expectSubscriptions(inner.subscriptions[0] ?? []).toBe('^----!');
    });
  });

  it('unsubscribing leaves it immediately', () => {
    marbles(({ model, expectSubscriptions, expectObservable, scheduler }) => {
      const inner = model('--a-b-c-(df|)', {
        a: text('Final Answer: a'),
        b: text('b'),
        c: text('c'),
        d: text('d'),
      });
      const agent = createAgent({ model: textTools(inner, dialects.lines), tools });
      expectObservable(agent.call$('?', { scheduler }), '-----!').toBe('');
      expectSubscriptions(inner.subscriptions[0] ?? []).toBe('^----!');
    });
  });

  it('P8: a made-up observation leaves it immediately', () => {
    marbles(({ model, expectSubscriptions, expectObservable, scheduler }) => {
      const inner = model(['--a-b-c-(df|)', '(ef|)'], {
        a: text('Action: weather\nAction Input: {"city": "Rome"}\nObserv'),
        b: text('ation: rain'),
        c: text('more'),
        d: text('d'),
        e: text('Final Answer: ok'),
      });
      const agent = createAgent({ model: textTools(inner, dialects.lines), tools });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('----(r|)', {
        r: 'ok',
      });
      expectSubscriptions(inner.subscriptions[0] ?? []).toBe('^---!');
    });
  });

  it('held text is no silence', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const inner = model('-a-a-a-a-a-(bf|)', { a: text('{"tool": '), b: text('{}') });
      const agent = createAgent({
        model: textTools(inner, dialects.flat),
        tools,
      });
      const options = {
        scheduler,
        limits: { maxParseRetries: 0, timeouts: { firstChunkMs: 3, chunkMs: 3 } },
      };
      const code$ = agent
        .call$('?', options)
        .pipe(catchError((error: unknown) => of((error as MillraceError).code)));
      expectObservable(code$).toBe('-----------(c|)', { c: 'invalidResponse' });
    });
  });

  it('everything else passes through in its place, and a restart begins again', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const inner = model('-a-u-r-(bf|)', {
        a: text('Final Answer: old'),
        u: { type: 'usage', usage: { inputTokens: 1 } },
        r: { type: 'restart', why: 'again' },
        b: text('{"answer": "new"}'),
      });
      const stream$ = textTools(inner, dialects.flat).stream$(
        { messages: [], tools: [{ name: 'x', description: 'x', inputSchema: {} }] },
        {
          demand: { open$: of(true) } as never,
          scheduler,
          report: () => undefined,
          stepId: 's',
          random: () => 0,
        },
      );
      expectObservable(stream$).toBe('-a-u-r-(bf|)', {
        a: text('old'),
        u: { type: 'usage', usage: { inputTokens: 1 } },
        r: { type: 'restart', why: 'again' },
        b: text('new'),
        f: finish(),
      });
    });
  });

  it('X1: a source without a finish has none here, and its error is its own, after what was held back', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const inner = model(['-a|', '-a-#'], { a: text('Hello') });
      const wrapped = textTools(inner, dialects.flat);
      const ask = () =>
        wrapped.stream$(
          { messages: [], tools: [{ name: 'x', description: 'x', inputSchema: {} }] },
          {
            demand: { open$: of(true) } as never,
            scheduler,
            report: () => undefined,
            stepId: 's',
            random: () => 0,
          },
        );
      expectObservable(ask()).toBe('--(t|)', { t: text('Hello') });
      expectObservable(ask()).toBe('---(t#)', { t: text('Hello') });
    });
  });
});
