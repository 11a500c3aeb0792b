import { describe, expect, it } from '@jest/globals';
import type { ModelChunk } from 'millrace';
import { encodeSignature } from '@millrace/wire';
import { chatReader, type ChatSource } from './chat-chunks.js';

const reader = (quirks: Partial<ChatSource> = {}) =>
  chatReader({
    vendor: 'Mine',
    server: 'Mine at 127.0.0.1',
    toolName: (name) => name.replace('wire_', ''),
    ...quirks,
  });

const delta = (fields: unknown, finish: unknown = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});

const read = (...events: readonly unknown[]): readonly ModelChunk[] => {
  const { read: next } = reader();
  return withoutFacts(events.flatMap((data) => next({ data })));
};

/** Each finish reason comes with facts of the vendor. */
const withoutFacts = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  chunks.filter(({ type }) => type !== 'facts');

const use = (fields: object): ModelChunk => ({ type: 'toolCall', ...fields });

describe('a chat completion', () => {
  it('R4: becomes text, thinking, tool uses by index and id, usage and a finish', () => {
    expect(
      read(
        delta({ role: 'assistant', content: '', refusal: null }),
        delta({ content: 'Hel' }),
        delta({ content: 'lo' }),
        delta({
          tool_calls: [
            {
              index: 0,
              id: 'c1',
              type: 'function',
              function: { name: 'wire_weather', arguments: '' },
            },
          ],
        }),
        delta({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
        delta({}, 'tool_calls'),
        {
          choices: [],
          usage: {
            prompt_tokens: 100,
            completion_tokens: 7,
            prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
          },
        },
      ),
    ).toEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      use({ index: 0, id: 'c1', name: 'weather', json: '' }),
      use({ index: 0, json: '{"a"' }),
      { type: 'finish', finish: 'stop' },
      {
        type: 'usage',
        usage: { inputTokens: 30, outputTokens: 7, cacheReadTokens: 60, cacheWriteTokens: 10 },
      },
    ]);
  });

  it('X1: reads a whole answer by the same mapping', () => {
    const message = {
      role: 'assistant',
      content: 'Hi',
      reasoning_content: 'Hm.',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
    };
    expect(
      withoutFacts(
        reader().readWhole({
          object: 'chat.completion',
          choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
          usage: { prompt_tokens: 3 },
        }),
      ),
    ).toEqual([
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'Hi' },
      use({ id: 'c1', name: 'weather', json: '{}' }),
      { type: 'usage', usage: { inputTokens: 3 } },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('X1: does not finish by a reason that is null or empty', () => {
    expect(read(delta({}), delta({}, ''), delta({}, 'null'), delta({}, undefined))).toEqual([]);
  });

  it('X1: fails if the server failed, and names it', () => {
    expect(() => read(delta({}, 'abort'))).toThrow(/^Mine at 127\.0\.0\.1 failed .*'abort'/u);
  });

  it('says a refusal as text, and finishes as one', () => {
    expect(
      read(delta({ refusal: 'I can' }), delta({ refusal: 'not.' }), delta({}, 'stop')),
    ).toEqual([
      { type: 'text', text: 'I can' },
      { type: 'text', text: 'not.' },
      { type: 'finish', finish: 'refusal' },
    ]);
  });

  it.each([
    [null],
    ['text'],
    [[]],
    [{}],
    [{ choices: null }],
    [{ choices: [] }],
    [{ choices: [null] }],
    [{ choices: [{ index: 1, delta: { content: 'another' }, finish_reason: 'stop' }] }],
    [delta(null)],
    [delta({ content: 7, tool_calls: {}, reasoning: [], refusal: null })],
    [delta({ content: [null, 7, { type: 'reference', reference_ids: ['x', -1] }, {}] })],
    [delta({ tool_calls: [null, 'call'], function_call: null })],
    [{ choices: [], usage: null }],
    [{ choices: [], usage: { prompt_tokens: null, completion_tokens: '7' } }],
    [{ choices: [], usage: { prompt_tokens: -1, completion_tokens: Number.NaN } }],
    [{ type: 'unknown', more: { of: 'it' } }],
  ])('X5: passes over what says nothing: %j', (data) => {
    expect(read(data)).toEqual([]);
    expect(reader().readWhole(data)).toEqual([]);
  });
});

describe('quirks', () => {
  it.each([['reasoning_content'], ['reasoning']])('X8: reads thinking in %s', (field) => {
    expect(read(delta({ [field]: 'Hm.' }))).toEqual([{ type: 'thinking', text: 'Hm.' }]);
  });

  it('X8: reads thinking once where two fields say it', () => {
    const twice = { reasoning_content: 'Hm.', reasoning: 'Hm.', reasoning_details: [] };
    expect(read(delta(twice))).toEqual([{ type: 'thinking', text: 'Hm.' }]);
  });

  it('X8: reads content in parts, thinking among them', () => {
    expect(
      read(
        delta({
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
            { type: 'thinking', thinking: 'So.' },
            { type: 'text', text: 'Hi' },
          ],
        }),
      ),
    ).toEqual([
      { type: 'thinking', text: 'Hm.' },
      { type: 'thinking', text: 'So.' },
      { type: 'text', text: 'Hi' },
    ]);
  });

  it('X8: takes usage from any chunk and any place, as far as it is reported', () => {
    expect(read({ choices: [], usage: { prompt_tokens: 9, prompt_cache_hit_tokens: 4 } })).toEqual([
      { type: 'usage', usage: { inputTokens: 5, cacheReadTokens: 4 } },
    ]);
    expect(read({ choices: [], x_groq: { usage: { completion_tokens: 2 } } })).toEqual([
      { type: 'usage', usage: { outputTokens: 2 } },
    ]);
    expect(read({ choices: [{ index: 0, usage: { prompt_tokens: 1 } }] })).toEqual([
      { type: 'usage', usage: { inputTokens: 1 } },
    ]);
  });

  it('X7: says of a tool call what the vendor said, hostile or not', () => {
    const call = (fields: object) => read(delta({ tool_calls: [fields] }));
    expect(call({ index: 1e9, id: '__proto__', function: { name: '__proto__' } })).toEqual([
      use({ index: 1e9, id: '__proto__', name: '__proto__', json: '' }),
    ]);
    expect(call({ index: null, id: '', function: { name: '', arguments: 'x' } })).toEqual([
      use({ json: 'x' }),
    ]);
    expect(call({ id: 7, index: '0', function: null })).toEqual([
      use({ index: 0, id: '7', json: '' }),
    ]);
    expect(call({ id: {}, index: 'first', function: null })).toEqual([use({ json: '' })]);
    expect(call({ id: 'c1', function: { arguments: null } })).toEqual([
      use({ id: 'c1', json: '' }),
    ]);
  });

  it('X8: takes arguments as an object', () => {
    expect(
      read(
        delta({ tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: { a: 1 } } }] }),
      ),
    ).toEqual([use({ id: 'c1', name: 'weather', input: { a: 1 } })]);
  });

  it('X8: reads the function call that there was before tool calls', () => {
    expect(
      read(
        delta({ function_call: { name: 'weather', arguments: '{' } }),
        delta({ function_call: { arguments: '}' } }),
        delta({}, 'function_call'),
      ),
    ).toEqual([
      use({ index: 0, name: 'weather', json: '{' }),
      use({ index: 0, json: '}' }),
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('X8: holds that function call back, which counts as work, and then emits what follows', () => {
    const { read: next, working } = reader();
    const call = (fields: object) => next({ data: delta({ function_call: fields }) });
    expect([working?.(), call({ name: 'weather', arguments: '{' }), working?.()]).toEqual([
      undefined,
      [],
      'weather',
    ]);
    next({ data: delta({}, 'function_call') });
    expect([working?.(), call({ arguments: '}' })]).toEqual([
      undefined,
      [use({ index: 0, json: '}' })],
    ]);
  });

  describe('X8: a call in the form of tool calls and as the function call before them', () => {
    const part = (fields: object) => ({ index: 0, id: 'c1', function: fields });
    const named = { name: 'weather', arguments: '' };
    const pieces = [{ arguments: '{"a"' }, { arguments: ':1}' }];
    const both = (fields: object) => delta({ function_call: fields, tool_calls: [part(fields)] });
    const cases: Readonly<Record<string, readonly unknown[]>> = {
      'in each chunk': [both(named), ...pieces.map(both)],
      'with the name in each chunk': [
        both(named),
        ...pieces.map((it) => both({ ...it, name: 'weather' })),
      ],
      whole: [both({ name: 'weather', arguments: '{"a":1}' })],
      'the function call first': [
        delta({ function_call: { name: 'weather', arguments: '{"a":1}' } }),
        ...[named, ...pieces].map((it) => delta({ tool_calls: [part(it)] })),
      ],
      'the function call last': [
        ...[named, ...pieces].map((it) => delta({ tool_calls: [part(it)] })),
        delta({ function_call: { name: 'weather', arguments: '{"a":1}' } }),
      ],
      'as a whole message': [
        {
          choices: [
            {
              message: {
                function_call: { name: 'weather', arguments: '{"a":1}' },
                tool_calls: [part({ name: 'weather', arguments: '{"a":1}' })],
              },
            },
          ],
        },
      ],
    };
    it.each(Object.entries(cases))('is one call: %s', (_, events) => {
      const chunks = read(...events, delta({}, 'tool_calls'));
      const calls = chunks.filter((chunk) => chunk.type === 'toolCall');
      expect(calls.every(({ id }) => id === 'c1')).toBe(true);
      expect(calls.map(({ json = '' }) => json).join('')).toBe('{"a":1}');
    });
  });

  it('X8: does not distinguish calls by a useless index', () => {
    const calls = ['Oslo', 'Rome'].map((city) => ({
      index: 0,
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    }));
    expect(reader({ sendsWholeCalls: true }).read({ data: delta({ tool_calls: calls }) })).toEqual([
      use({ name: 'weather', json: '{"city":"Oslo"}' }),
      use({ name: 'weather', json: '{"city":"Rome"}' }),
    ]);
  });

  it('X5: finishes with each finish reason, and reads what follows', () => {
    const call = (city: string) =>
      delta(
        { tool_calls: [{ index: 0, function: { name: 'weather', arguments: { city } } }] },
        'tool_calls',
      );
    const [oslo, rome] = ['Oslo', 'Rome'].map((city) => use({ name: 'weather', input: { city } }));
    const finish = { type: 'finish', finish: 'stop' };
    const { read: next } = reader({ sendsWholeCalls: true });
    const answer = [call('Oslo'), call('Rome'), delta({}, 'length')];
    expect(withoutFacts(answer.flatMap((data) => next({ data })))).toEqual([
      oslo,
      finish,
      rome,
      finish,
      { ...finish, finish: 'length' },
    ]);
  });

  it('X5: finishes as a refusal if that follows the finish reason', () => {
    expect(read(delta({}, 'stop'), delta({ refusal: 'No.' })).slice(1)).toEqual([
      { type: 'text', text: 'No.' },
      { type: 'finish', finish: 'refusal' },
    ]);
  });

  it.each([
    [{ error: { code: 502, message: 'Provider died.' } }, 'server', 'Provider died.'],
    [{ error: { code: 429, message: 'Slow down.' } }, 'rateLimited', 'Slow down.'],
    [{ error: { code: 'content_filter', message: 'No.' } }, 'refused', 'No.'],
    [{ error: 'Provider died.' }, 'server', 'Provider died.'],
    [{ delta: { error: { message: 'Provider died.' } } }, 'server', 'Provider died.'],
    [{ message: { error: { message: 'Provider died.' } } }, 'server', 'Provider died.'],
  ])(
    'X1: fails with the error in a choice, with or without a finish: %j',
    (fields, code, words) => {
      for (const finish_reason of [null, 'stop', 'error']) {
        const data = { choices: [{ index: 0, finish_reason, ...fields }] };
        expect(() => read(data)).toThrow(
          expect.objectContaining({ code, message: expect.stringContaining(words) }),
        );
      }
    },
  );

  it.each([[{ error: null }], [{ error: {} }], [{ error: '' }], [{ error: false }]])(
    'X8: takes %j in a choice for no error',
    (fields) => {
      const data = { choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...fields }] };
      expect(read(data)).toEqual([{ type: 'finish', finish: 'stop' }]);
    },
  );

  it('X8: counts what only the total does as output', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 20 };
    expect(read({ choices: [], usage })).toEqual([
      { type: 'usage', usage: { inputTokens: 10, outputTokens: 10 } },
    ]);
    expect(read({ choices: [], usage: { ...usage, total_tokens: 0 } })).toEqual([
      { type: 'usage', usage: { inputTokens: 10, outputTokens: 3 } },
    ]);
  });

  it('X8: keeps the signature of a tool call in front of it', () => {
    const extra_content = { google: { thought_signature: 'sig' } };
    const call = { id: 'c1', function: { name: 'weather', arguments: '{}' }, extra_content };
    expect(read(delta({ tool_calls: [call] }))).toEqual([
      {
        type: 'thinking',
        text: '',
        signature: encodeSignature('Mine', 'extra_content', extra_content),
      },
      use({ id: 'c1', name: 'weather', json: '{}' }),
    ]);
  });

  it('X8: keeps the one reasoning detail of an answer in front of what it led to', () => {
    const detail = { type: 'reasoning.encrypted', data: 'x' };
    expect(read(delta({ reasoning_details: [detail] }), delta({ content: 'Hi' }))).toEqual([
      {
        type: 'thinking',
        text: '',
        signature: encodeSignature('Mine', 'reasoning_details', [detail]),
      },
      { type: 'text', text: 'Hi' },
    ]);
  });

  it('X8: gathers reasoning details, and closes the thinking with them', () => {
    const detail = (fields: object) => ({ reasoning_details: [fields] });
    const text = { type: 'reasoning.text', index: 0, format: 'f' };
    expect(
      read(
        delta({ reasoning: 'Hm', ...detail({ ...text, text: 'Hm', signature: null }) }),
        delta(detail({ ...text, text: '.', id: 'r1' })),
        delta(detail({ ...text, signature: 'sig' })),
        delta(detail({ type: 'reasoning.encrypted', data: 'x', index: 1 })),
        delta(detail({ type: 'reasoning.encrypted', data: 'y', index: 1 })),
        delta({ content: 'Hi' }),
        delta({}, 'stop'),
      ),
    ).toEqual([
      { type: 'thinking', text: 'Hm' },
      { type: 'thinking', text: '.' },
      {
        type: 'thinking',
        text: '',
        signature: encodeSignature('Mine', 'reasoning_details', [
          { ...text, text: 'Hm.', signature: 'sig', id: 'r1' },
          { type: 'reasoning.encrypted', data: 'x', index: 1 },
          { type: 'reasoning.encrypted', data: 'y', index: 1 },
        ]),
      },
      { type: 'text', text: 'Hi' },
      { type: 'finish', finish: 'stop' },
    ]);
  });
});

describe('a whole message after its stream', () => {
  const whole = (message: object) => ({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
  const stop = { type: 'finish', finish: 'stop' };
  const call = { id: 'c1', function: { name: 'f', arguments: '{}' } };

  it('X31: is read once', () => {
    const streamed = [delta({ content: 'Hi ' }), delta({ content: 'you' })];
    expect(read(...streamed, whole({ content: 'Hi you' })).slice(2)).toEqual([stop]);
    const answer = read(...streamed, whole({ content: 'Hi all' }));
    expect(answer.slice(2)).toMatchObject([
      { type: 'restart', isSameRequest: true },
      { type: 'text', text: 'Hi all' },
      stop,
    ]);
    expect(read(delta({ tool_calls: [call] }), whole({ tool_calls: [call] }))).toMatchObject([
      { type: 'toolCall' },
      { type: 'restart' },
      { type: 'toolCall' },
      stop,
    ]);
  });

  it('X8: may be empty, or be all that a server streams', () => {
    expect(read(delta({ content: 'Hi' }), whole({ role: 'assistant', content: '' }))).toEqual([
      { type: 'text', text: 'Hi' },
      stop,
    ]);
    const pieces = [whole({ tool_calls: [call] }), whole({ content: 'Hi' })];
    expect(read(delta({ role: 'assistant' }), ...pieces).map(({ type }) => type)).not.toContain(
      'restart',
    );
  });
});

describe('custom tools', () => {
  const custom = (fields: object, more: object = {}) =>
    delta({ tool_calls: [{ index: 0, ...more, custom: fields }] });

  it('B: make calls whose text is an argument', () => {
    const events = [
      custom({ name: 'wire_patch', input: '*** ' }, { id: 'c1', type: 'custom' }),
      custom({ input: 'Begin "x"' }),
      delta({}, 'tool_calls'),
    ];
    const { read: next } = reader({ textInput: (name) => `${name}_text` });
    const chunks = events.flatMap((data) => next({ data }));
    expect(chunks[0]).toEqual({
      type: 'toolCall',
      index: 0,
      id: 'c1',
      name: 'patch',
      json: '',
      suspends: { request: { type: 'custom_tool_call' } },
      vendorData: { vendor: 'Mine', data: { type: 'custom' } },
    });
    expect(chunks.findLast(({ type }) => type === 'toolCall')).toEqual({
      type: 'toolCall',
      index: 0,
      id: 'c1',
      input: { wire_patch_text: '*** Begin "x"' },
    });
  });

  it('X5: have all of their text, also what follows a finish reason, or comes without one', () => {
    const start = custom({ name: 'patch', input: 'a' }, { id: 'c1', type: 'custom' });
    const rest = custom({ input: 'b' });
    const input = { type: 'toolCall', index: 0, id: 'c1', input: { input: 'ab' } };
    expect(read(start, delta({}, 'tool_calls'), rest).at(-1)).toEqual(input);
    const { read: next, readDone } = reader({ finishesWithDone: true });
    [start, rest].forEach((data) => next({ data }));
    expect(readDone?.()).toEqual([input, { type: 'finish', finish: 'stop' }]);
  });

  it('X30: keeps a call of another kind, and an unknown part of content', () => {
    const call = (hologram: object) => ({ index: 0, id: 'c1', type: 'hologram', hologram });
    const part = { type: 'hologram', data: 'x' };
    const events = [
      delta({ tool_calls: [call({ light: 'gr', size: 1 })] }),
      delta({ content: [part] }),
      delta({ tool_calls: [{ index: 0, hologram: { light: 'een' } }] }, 'stop'),
    ];
    const block = (data: object) => ({
      type: 'block',
      block: { type: 'vendor', vendor: 'Mine', kind: 'hologram', data },
    });
    expect(read(...events)).toEqual([
      block(part),
      block(call({ light: 'green', size: 1 })),
      { type: 'finish', finish: 'stop' },
    ]);
    const later = { ...call({ light: 'red' }), index: 1 };
    expect(read(...events, delta({ tool_calls: [later] })).at(-1)).toEqual(block(later));
  });
});

describe('sources', () => {
  const cited = (...events: readonly unknown[]) =>
    read(...events).flatMap((chunk) => (chunk.type === 'citation' ? [chunk.citation] : []));
  const url = 'https://example.com/snow';
  const annotation = {
    type: 'url_citation',
    url_citation: { url, title: 'Snow', start_index: 0, end_index: 4 },
  };

  it.each<[string, readonly unknown[], object]>([
    [
      'annotations',
      [delta({ annotations: [annotation] }), delta({ annotations: [annotation] })],
      { url, title: 'Snow', start: 0, end: 4, vendorData: { vendor: 'Mine', data: annotation } },
    ],
    [
      'a list of URLs in each event',
      [
        { ...delta({ content: 'x' }), citations: [url] },
        { ...delta({}, 'stop'), citations: [url] },
      ],
      { url },
    ],
    [
      'results of a search next to their URLs',
      [{ ...delta({}, 'stop'), citations: [url], search_results: [{ url, title: 'Snow' }] }],
      { url, title: 'Snow' },
    ],
    [
      'references',
      [delta({ content: [{ type: 'reference', reference_ids: [2] }] })],
      { documentIndex: 2 },
    ],
    [
      'a file',
      [
        delta({
          annotations: [{ type: 'file_citation', file_id: 'f1', filename: 'a.pdf', index: 3 }],
        }),
      ],
      { fileId: 'f1', title: 'a.pdf' },
    ],
  ])('D: are citations, each once: %s', (_, events, citation) => {
    expect(cited(...events)).toEqual([expect.objectContaining(citation)]);
  });
});

describe('facts', () => {
  it('E: are those of the vendor', () => {
    const event = {
      ...delta({}, 'stop'),
      id: 'r1',
      model: 'm-1',
      service_tier: 'flex',
      usage: { completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 25 } },
    };
    expect(reader().read({ data: event })).toContainEqual({
      type: 'facts',
      facts: {
        name: 'Mine',
        id: 'r1',
        model: 'm-1',
        serviceTier: 'flex',
        stopReason: 'stop',
        reasoningTokens: 25,
      },
    });
  });

  it('X8: signs text as Gemini does', () => {
    const extra_content = { google: { thought_signature: 'sig' } };
    expect(read(delta({ content: 'Hi', extra_content }))).toEqual([
      { type: 'text', text: 'Hi' },
      { type: 'text', text: '', vendorData: { vendor: 'Mine', data: extra_content } },
    ]);
  });
});
