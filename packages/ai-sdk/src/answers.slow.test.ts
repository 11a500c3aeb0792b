import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, output, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { z } from 'zod';
import { ask, chat, claude, closeServers, oslo, responses, serving } from './ask.test-support.js';
import { aiSdkModel } from './index.js';
import {
  chatCall,
  chatCalls,
  chatText,
  claudeBlocks,
  claudeText,
  completed,
  completion,
  itemAdded,
  itemDone,
  message,
  response,
  responseText,
  textBlock,
} from './wire-events.test-support.js';

afterEach(closeServers);

describe('what goes back', () => {
  it('06: sources are in the reply', async () => {
    const citation = { type: 'web_search_result_location', url: 'https://a.example/', title: 'A' };
    const cited = { ...citation, encrypted_index: 'EI', cited_text: 'snow' };
    const text = [...textBlock('It snows.'), { type: 'citations_delta', citation: cited }];
    const { reply } = await ask(claude, [claudeBlocks([text])]);
    expect(JSON.stringify(reply)).toContain('https://a.example/');
  });

  it('07: the call of a tool goes back with its program, and its container while that waits', async () => {
    const caller = { type: 'code_execution_20250825', tool_id: 'srv_1' };
    const call = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {}, caller };
    const { server } = await ask(claude, [
      claudeBlocks([[call, { type: 'input_json_delta', partial_json: oslo }]], {
        stop: 'tool_use',
        delta: { container: { id: 'container_1', expires_at: '2026-12-01T00:00:00Z' } },
      }),
      claudeText('Done.'),
    ]);
    expect(server.bodies[1]).toContain(JSON.stringify(caller));
    expect(JSON.parse(server.bodies[1] ?? '')).toMatchObject({ container: 'container_1' });
  });

  it('08: options of the vendor stand beside what a request has', async () => {
    const providerOptions = { openai: { textVerbosity: 'low', reasoningSummary: 'auto' } };
    const { server } = await ask(
      responses,
      [responseText('{"city":"Oslo"}')],
      { settings: { providerOptions } },
      { tools: [], use: [output(z.object({ city: z.string() }))] },
    );
    const { text } = JSON.parse(server.bodies[0] ?? '') as { text: Record<string, object> };
    expect(text).toMatchObject({ verbosity: 'low', format: { type: 'json_schema' } });
  });

  it('13: an image of a tool is an image, and no value becomes {}', async () => {
    const source = { kind: 'base64', mediaType: 'image/png', data: 'QUJD' } as const;
    const results: readonly (() => unknown)[] = [
      () => [{ type: 'image', source }],
      () => new Map([['a', 1]]),
      () => new Set([1]),
      () => new Error('No such file'),
    ];
    for (const [index, run] of results.entries()) {
      const draw = tool({ name: 'draw', description: 'd', input: z.object({}), run });
      const call = { type: 'tool_use', id: 'toolu_1', name: 'draw', input: {} };
      const { server } = await ask(
        claude,
        [claudeBlocks([[call]], { stop: 'tool_use' }), claudeText('Done.')],
        {},
        { tools: [draw] },
      );
      const sent = server.bodies[1] ?? '';
      expect(sent).not.toMatch(/"(content|text)":"?\{\}/);
      if (index === 0) expect(sent).toMatch(/"type":"image"/);
    }
  });

  it('17: up to four cache marks are sent', async () => {
    const server = await serving(claudeText('Yes.'));
    const marked = Array.from({ length: 6 }, (_, index) => ({
      ...{ type: 'text', text: `Part ${index}.`, cache: true },
    })) as { type: 'text'; text: string; cache: true }[];
    const agent = createAgent({ model: aiSdkModel(claude(server.url)), instructions: 'Be brief.' });
    await sessions(agent).open('u').call({ role: 'user', content: marked });
    expect(server.bodies[0]?.match(/"cache_control"/g)?.length).toBeLessThanOrEqual(4);
  });
});

describe('arguments and answers as models write them', () => {
  it('11: null for an optional value', async () => {
    const { runs } = await ask(chat, [
      completion(chatCall(0, 'weather', '{"city":"Oslo","days":null}'), chatCalls),
      chatText('Done.'),
    ]);
    expect(runs).toEqual([{ city: 'Oslo', days: 1 }]);
  });

  it('12: an integer that would be rounded does not run', async () => {
    const seen: unknown[] = [];
    const schema = { type: 'object', properties: { id: { type: 'integer' } } } as const;
    const remove = tool({
      ...{ name: 'remove', description: 'r', input: jsonSchema(schema) },
      run: (it) => (seen.push(it), 'ok'),
    });
    const call = chatCall(0, 'remove', '{"id":2512292042121000001}');
    await ask(chat, [completion(call, chatCalls), chatText('Done.')], {}, { tools: [remove] });
    expect(seen).toEqual([]);
  });

  it('14: two messages of one answer stay apart', async () => {
    const { reply } = await ask(responses, [
      response(...message(0, 'Let me check.'), ...message(1, 'It snows.'), completed()),
    ]);
    expect(reply?.content).toHaveLength(2);
  });

  const piece = (json: string, id?: string): object => ({
    delta: {
      tool_calls: [
        {
          index: 0,
          ...(id && { id, type: 'function' }),
          function: { ...(id && { name: 'weather' }), arguments: json },
        },
      ],
    },
  });
  it.each([
    ['a string in a string', [chatCall(0, 'weather', JSON.stringify(oslo))]],
    ['a mark of the model after them', [chatCall(0, 'weather', `${oslo}<|call|>`)]],
    ['a closing tag after them', [chatCall(0, 'weather', `${oslo}\n</tool_call>`)]],
    ['a name with a prefix', [chatCall(0, 'functions.weather', oslo)]],
    ['a name with a channel', [chatCall(0, 'weather<|channel|>commentary', oslo)]],
    [
      'growing snapshots instead of deltas',
      [piece('{"city"', 'a'), piece('{"city":"Os', 'a'), piece(oslo, 'a')],
    ],
    ['all arguments sent twice', [piece('', 'a'), piece(oslo), piece(oslo)]],
  ])('15: %s', async (_, choices) => {
    const { runs } = await ask(chat, [completion(...choices, chatCalls), chatText('Done.')]);
    expect(runs).toEqual([{ city: 'Oslo', days: 1 }]);
  });
});

describe('facts and signs of work', () => {
  it('18: reasoning tokens and the stop reason of the vendor', async () => {
    const thought = {
      ...{ type: 'response.completed' },
      response: {
        ...{ id: 'r1', model: 'm', created_at: 1 },
        usage: {
          ...{ input_tokens: 5, output_tokens: 30, total_tokens: 35 },
          output_tokens_details: { reasoning_tokens: 25 },
        },
      },
    };
    const shown = await ask(responses, [response(...message(0, 'Yes.'), thought)]);
    expect(JSON.stringify(shown.events)).toContain('"reasoningTokens":25');
    const refusal = { category: 'cyber', explanation: 'No.' };
    const no = claudeBlocks([textBlock('No.')], {
      stop: 'refusal',
      delta: { stop_details: { type: 'refusal', ...refusal } },
      usage: { server_tool_use: { web_search_requests: 2 } },
    });
    const { events, reply } = await ask(claude, [no]);
    expect(reply?.reason).toBe('refused');
    expect(events.find((it) => it.type === 'postReasoning')?.message.vendor).toMatchObject({
      stopReason: 'refusal',
      refusal,
      toolUses: { web_search: 2 },
    });
  });

  it.each([
    [
      'reasoning of OpenAI',
      responses,
      response(
        itemAdded(0, { type: 'reasoning', id: 'rs_1', summary: [] }),
        ...Array.from({ length: 5 }, () => ({ type: 'keepalive', sequence_number: 0 })),
        itemDone(0, { type: 'reasoning', id: 'rs_1', summary: [] }),
        ...message(1, 'Yes.'),
        completed(),
      ),
      'reasoning',
    ],
    [
      'reasoning of Anthropic',
      claude,
      claudeBlocks([[{ type: 'thinking', thinking: '', signature: '' }], textBlock('Yes.')], {
        between: Array.from({ length: 5 }, () => ({ type: 'ping' })),
      }),
      'reasoning',
    ],
    [
      'a tool of Anthropic',
      claude,
      claudeBlocks(
        [
          [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }],
          [{ type: 'web_search_tool_result', tool_use_id: 's', content: [] }],
          textBlock('Yes.'),
        ],
        { between: Array.from({ length: 5 }, () => ({ type: 'ping' })) },
      ),
      'web_search',
    ],
  ] as const)('19: events that show nothing are signs of work: %s', async (_, make, list, on) => {
    const server = await serving(list);
    const working: string[] = [];
    const context = { ...lentContext(), working: (it: string) => void working.push(it) };
    const content = [{ type: 'text', text: 'Hi!' }] as const;
    await lastValueFrom(
      aiSdkModel(make(server.url), { retry: false })
        .stream$({ messages: [{ id: '1', role: 'user', content }] }, context)
        .pipe(toArray()),
    );
    expect(working.filter((it) => it === on).length).toBeGreaterThanOrEqual(5);
  });
});
