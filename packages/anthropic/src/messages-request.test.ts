import { describe, expect, it } from '@jest/globals';
import { isMillraceError, type ModelRequest } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { checkMessagesRequest } from '@millrace/fault-server';
import { type JsonRecord, listAt, toolNames, toWireId } from '@millrace/wire';
import fc from 'fast-check';
import { modelRequest } from './conversations.test-support.js';
import { fitRequest } from './fit-request.js';
import { messagesRequest, type RequestSettings } from './messages-request.js';
import { isThinkingEnabled, thinkingConfig } from './thinking.js';

/** Only the older version of the API takes a temperature. */
const violationsOf = (body: JsonRecord): readonly string[] => {
  const version = 'temperature' in body ? '2023-06-01' : '2026-10-21';
  return checkMessagesRequest(
    { 'anthropic-version': version, 'content-type': 'application/json' },
    body,
  );
};

const settings: RequestSettings = { model: 'claude-sonnet-4-5', maxTokens: 1_000 };

const bodyOf = (
  request: Partial<ModelRequest>,
  more: Partial<RequestSettings> = {},
): JsonRecord => {
  const names = toolNames((request.tools ?? []).map(({ name }) => name));
  const messages = request.messages ?? [
    { id: 'm1', role: 'user', content: [{ type: 'text', text: 'Hello' }] },
  ];
  const write = messagesRequest({ ...settings, ...more });
  const toolName = (name: string): string => names.toWire(name);
  const body = parsedJson(write({ ...request, messages }, { toolName, toolId: toWireId }, 0));
  return isRecord(body) ? body : {};
};

const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
};

const anySettings = fc.record(
  {
    thinking: fc.constantFrom(false as const, 'adaptive' as const, { budgetTokens: 1_024 }),
    effort: fc.constantFrom('low' as const, 'max' as const),
    cache: fc.constantFrom('5m' as const, '1h' as const),
  },
  { requiredKeys: [] },
);

/** A conversation may hold nothing that could be sent; that is said before anything is. */
const hasContent = (build: () => unknown): boolean => {
  try {
    build();
    return true;
  } catch (error) {
    if (isMillraceError(error) && error.message.includes('are empty')) return false;
    throw error;
  }
};

describe('the body of a request', () => {
  it('X16: is one that the API takes, regardless of the conversation and the options', () => {
    fc.assert(
      fc.property(modelRequest, anySettings, (request, more) => {
        const { request: fitted } = fitRequest(
          request,
          isThinkingEnabled(settings.model, thinkingConfig(more.thinking)),
        );
        fc.pre(hasContent(() => bodyOf(fitted, more)));
        expect(violationsOf(bodyOf(fitted, more))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('X16: is the same for the same messages, however many follow', () => {
    fc.assert(
      fc.property(modelRequest, ({ messages }) => {
        const next = {
          id: 'next',
          role: 'user' as const,
          content: [{ type: 'text' as const, text: 'On.' }],
        };
        const sent = (request: Partial<ModelRequest>): string => {
          const { messages: wire } = bodyOf(request);
          return JSON.stringify(wire).slice(0, -3);
        };
        fc.pre(messages.at(-1)?.role === 'tool');
        expect(sent({ messages: [...messages, next] })).toContain(sent({ messages }));
      }),
      { numRuns: 100 },
    );
  });

  it.each([{}, { tools: [], stopSequences: [], system: ' ' }])(
    'leaves out what a request does not say: %j',
    (request) => {
      expect(bodyOf(request)).toEqual({
        model: 'claude-sonnet-4-5',
        max_tokens: 1_000,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
        stream: true,
      });
    },
  );

  it.each([
    ['auto', undefined],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [{ name: 'weather' }, { type: 'tool', name: 'weather' }],
  ] as const)('writes the tool choice %j as %j', (toolChoice, expected) => {
    expect(bodyOf({ tools: [weather], toolChoice })['tool_choice']).toEqual(expected);
    expect(bodyOf({ toolChoice })['tool_choice']).toBeUndefined();
  });

  it('writes a name that the API does not take in another way, and the same everywhere', () => {
    const read = { ...weather, name: 'files.read' };
    const body = bodyOf({
      tools: [read],
      toolChoice: { name: read.name },
      messages: [
        { id: 'm1', role: 'user', content: [{ type: 'text', text: 'Read it.' }] },
        {
          id: 'm2',
          role: 'assistant',
          content: [{ type: 'tool_call', id: 'a', name: read.name, input: {} }],
        },
        {
          id: 'm3',
          role: 'tool',
          content: [{ type: 'tool_result', toolCallId: 'a', content: [], isError: false }],
        },
      ],
    });
    const name = toolNames([read.name]).toWire(read.name);
    expect(name).not.toBe(read.name);
    expect(body['tools']).toMatchObject([{ name }]);
    expect(body['tool_choice']).toMatchObject({ name });
    expect(body['messages']).toMatchObject([{}, { content: [{ name }] }, {}]);
  });

  it('adds the budget for thinking to the tokens of the answer', () => {
    expect(bodyOf({ maxTokens: 10 }, { thinking: { budgetTokens: 2_000 } })).toMatchObject({
      max_tokens: 2_010,
      thinking: { type: 'enabled', budget_tokens: 2_000 },
    });
    expect(bodyOf({}, { thinking: 'adaptive' })).toMatchObject({
      max_tokens: 1_000,
      thinking: { type: 'adaptive' },
    });
    expect(bodyOf({}, { thinking: false })).toMatchObject({ thinking: { type: 'disabled' } });
  });

  it.each([
    ['claude-sonnet-4-5', undefined, 32_000],
    ['claude-sonnet-4-5', 8_000, 40_000],
    ['claude-opus-4-5', 8_000, 40_000],
    ['claude-opus-4-1', 8_000, 32_000],
    ['claude-opus-4-20250514', 8_000, 32_000],
    ['anthropic.claude-opus-4-1-20250805-v1:0', 8_000, 32_000],
    ['claude-3-5-haiku-latest', undefined, 8_192],
    ['claude-3-haiku-20240307', undefined, 4_096],
    ['claude-3-7-sonnet-latest', undefined, 32_000],
  ])('lets %s with a budget of %j use %j tokens by default', (model, budgetTokens, expected) => {
    const thinking = budgetTokens === undefined ? undefined : { budgetTokens };
    const more = { model, maxTokens: undefined, thinking };
    expect(bodyOf({}, more)['max_tokens']).toBe(expected);
    expect(bodyOf({ maxTokens: 50_000 }, { model })['max_tokens']).toBe(50_000);
  });

  it.each(['filter[id]', '$top', 'two words', '', 'x'.repeat(65)])(
    'X16: refuses a tool with a property that is called %j',
    (key) => {
      const properties = { ok: { type: 'object', properties: { 'a b': {} } }, [key]: {} };
      const named = { ...weather, inputSchema: { type: 'object', properties } };
      expect(() => bodyOf({ tools: [named] })).toThrow(
        expect.objectContaining({
          code: 'invalidRequest',
          message: expect.stringContaining(`'weather' has a property '${key}'`),
        }),
      );
    },
  );

  it('does not think on within an answer that did not begin so', () => {
    const messages: ModelRequest['messages'] = [
      { id: 'm1', role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
      {
        id: 'm2',
        role: 'assistant',
        content: [{ type: 'tool_call', id: 'a', name: 'weather', input: {} }],
      },
      {
        id: 'm3',
        role: 'tool',
        content: [{ type: 'tool_result', toolCallId: 'a', content: [], isError: false }],
      },
    ];
    const thinking = { budgetTokens: 2_000 };
    expect(bodyOf({ messages, tools: [weather] }, { thinking })).not.toHaveProperty('thinking');
    const next = {
      id: 'm4',
      role: 'user',
      content: [{ type: 'text', text: 'And Rome?' }],
    } as const;
    const answer = {
      id: 'm3b',
      role: 'assistant',
      content: [{ type: 'text', text: 'Sun.' }],
    } as const;
    expect(bodyOf({ messages: [...messages, answer, next] }, { thinking })).toHaveProperty(
      'thinking',
    );
  });

  it('marks for the cache the tools, the system prompt and the ends of the last two user turns', () => {
    const mark = { type: 'ephemeral', ttl: '1h' };
    const messages: ModelRequest['messages'] = ['one', 'two', 'three'].flatMap((text, at) => [
      { id: `u${at}`, role: 'user', content: [{ type: 'text', text }] },
      ...(at < 2
        ? [{ id: `a${at}`, role: 'assistant' as const, content: [{ type: 'text' as const, text }] }]
        : []),
    ]);
    const body = bodyOf({ system: 'Be brief.', tools: [weather], messages }, { cache: '1h' });
    expect(body['system']).toEqual([{ type: 'text', text: 'Be brief.', cache_control: mark }]);
    expect(body['tools']).toMatchObject([{ cache_control: mark }]);
    expect(JSON.stringify(body['messages']).split('cache_control')).toHaveLength(3);
    expect(body['messages']).toMatchObject([
      {},
      {},
      { content: [{ text: 'two', cache_control: mark }] },
      {},
      { content: [{ text: 'three', cache_control: mark }] },
    ]);
    expect(bodyOf({ tools: [weather] }, { cache: '5m' })['tools']).toMatchObject([
      { cache_control: { ttl: '5m' } },
    ]);
  });

  it('X16: counts the cache marks of the user towards the four that the API accepts', () => {
    const marked = fc.constantFrom(undefined, true as const, '5m' as const, '1h' as const);
    const control = fc.constantFrom(
      {},
      { cache_control: { type: 'ephemeral' } },
      { cache_control: { type: 'ephemeral', ttl: '1h' } },
    );
    const turn = fc.record({ cache: marked, isLong: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 40 }),
        fc.record({
          builtIn: control,
          body: control,
          own: control,
          cache: fc.constantFrom('5m' as const, '1h' as const),
        }),
        fc.constantFrom(undefined, 9),
        (turns, { builtIn, body, own, cache }, fixedSystem) => {
          const messages = turns.flatMap(({ cache: mark }, at): ModelRequest['messages'] => [
            {
              id: `u${at}`,
              role: 'user',
              content: [
                { type: 'text', text: `q${at}`, ...(mark === undefined ? {} : { cache: mark }) },
              ],
            },
            { id: `a${at}`, role: 'assistant', content: [{ type: 'text', text: `a${at}` }] },
          ]);
          const sent = bodyOf(
            {
              messages,
              system: 'Be brief.\n\nIt is noon.',
              tools: [{ ...weather, vendorOptions: { Anthropic: own } }],
              ...(fixedSystem === undefined ? {} : { fixedSystem }),
            },
            { cache, body, builtInTools: [{ type: 'web_search_20260318', name: 's', ...builtIn }] },
          );
          // The API takes a prefix in the order of tools, system and messages.
          const order = JSON.stringify([sent['tools'], sent['system'], sent['messages']]);
          const times = [
            ...order.matchAll(/"cache_control":\{"type":"ephemeral"(?:,"ttl":"(..)")?\}/gu),
          ].map(([, ttl]) => ttl ?? '5m');
          const total = times.length + ('cache_control' in body ? 1 : 0);
          expect(total).toBeLessThanOrEqual(4);
          const asked = new Set([
            ...[builtIn, own].flatMap((it) =>
              'cache_control' in it ? [JSON.stringify(it).includes('1h') ? '1h' : '5m'] : [],
            ),
            ...turns.flatMap(({ cache: mark }) =>
              mark === undefined ? [] : [mark === true ? '5m' : mark],
            ),
          ]);
          const isShortFirst = times.join().includes('5m,1h');
          // Only the user's own mixture may be out of order.
          if (isShortFirst) expect(asked.size).toBe(2);
        },
      ),
      { numRuns: 200 },
    );
  });

  it.each([
    ['5m', '1h', ['5m', '5m']],
    ['1h', '5m', ['1h', '1h']],
  ] as const)('takes the lifetime of a mark of the user: %s instead of %s', (ttl, cache, times) => {
    const tools = [
      { ...weather, vendorOptions: { Anthropic: { cache_control: { type: 'ephemeral', ttl } } } },
    ];
    const body = bodyOf({ system: 'Be brief.', tools }, { cache });
    expect(body).toMatchObject({
      system: [{ cache_control: { ttl: times[0] } }],
      messages: [{ content: [{ cache_control: { ttl: times[1] } }] }],
    });
  });

  it('adds no marks if the user mixes lifetimes', () => {
    const messages = (['1h', '5m'] as const).flatMap((cache, at): ModelRequest['messages'] => [
      { id: `u${at}`, role: 'user', content: [{ type: 'text', text: 'q', cache }] },
      { id: `a${at}`, role: 'assistant', content: [{ type: 'text', text: 'a' }] },
    ]);
    const body = JSON.stringify(bodyOf({ system: 'Be brief.', messages }, { cache: '5m' }));
    expect(body.split('cache_control')).toHaveLength(3);
  });

  it('marks the part of the system prompt that is the same in every call, and no tool that is loaded later', () => {
    const later = {
      ...weather,
      name: 'later',
      vendorOptions: { Anthropic: { defer_loading: true } },
    };
    const system = 'Be brief.\n\nIt is noon.';
    const body = bodyOf({ system, fixedSystem: 9, tools: [weather, later] }, { cache: '5m' });
    expect(body['system']).toMatchObject([
      { text: 'Be brief.', cache_control: {} },
      { text: '\n\nIt is noon.', cache_control: {} },
    ]);
    const tools = listAt(bodyOf({ system, tools: [weather, later] }, { cache: '5m' }), 'tools');
    expect(tools).toMatchObject([{ cache_control: {} }, { name: 'later', defer_loading: true }]);
    expect(tools[1]).not.toHaveProperty('cache_control');
  });

  it('keeps the newest marks of the user if there are too many', () => {
    const messages = Array.from({ length: 60 }, (_, at): ModelRequest['messages'] => [
      { id: `u${at}`, role: 'user', content: [{ type: 'text', text: `q${at}`, cache: true }] },
      { id: `a${at}`, role: 'assistant', content: [{ type: 'text', text: `a${at}` }] },
    ]).flat();
    const marked = listAt(bodyOf({ messages }, { cache: '5m' }), 'messages').flatMap((it, at) =>
      JSON.stringify(it).includes('cache_control') ? [at] : [],
    );
    expect(marked).toEqual([112, 114, 116, 118]);
  });

  it('marks the same ends of a conversation of many pages', () => {
    const turns = Array.from({ length: 40 }, (_, at) => `${at}`);
    const messages: ModelRequest['messages'] = turns.flatMap((text, at) => [
      { id: `u${at}`, role: 'user', content: [{ type: 'text', text }] },
      { id: `a${at}`, role: 'assistant', content: [{ type: 'text', text }] },
    ]);
    const marked = (until: number): readonly number[] =>
      listAt(bodyOf({ messages: messages.slice(0, until) }, { cache: '5m' }), 'messages').flatMap(
        (message, at) => (JSON.stringify(message).includes('cache_control') ? [at] : []),
      );
    expect([79, 80].map(marked)).toEqual([
      [76, 78],
      [78, 79],
    ]);
  });

  it('holds the answer to a schema, beside the effort', () => {
    const outputSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
    expect(bodyOf({ outputSchema }, { effort: 'high' })['output_config']).toEqual({
      effort: 'high',
      format: { type: 'json_schema', schema: { ...outputSchema, additionalProperties: false } },
    });
    expect(bodyOf({ outputSchema: { type: 'object' } })).not.toHaveProperty('output_config');
  });

  it('puts the tools of the vendor before the others, and the fields of the caller over all', () => {
    const search = { type: 'web_search_20260318', name: 'web_search' };
    const body = bodyOf(
      { tools: [weather] },
      { builtInTools: [search], body: { service_tier: 'auto', output_config: { effort: 'low' } } },
    );
    expect(body).toMatchObject({
      tools: [search, { name: 'weather' }],
      service_tier: 'auto',
      output_config: { effort: 'low' },
    });
    expect(bodyOf({}, { body: { max_tokens: 5 } })['max_tokens']).toBe(5);
    const fetch = { type: 'web_fetch_20260318', name: 'web_fetch' };
    const more = bodyOf({ tools: [weather] }, { builtInTools: [search], body: { tools: [fetch] } });
    expect(more['tools']).toMatchObject([search, { name: 'weather' }, fetch]);
  });
});
