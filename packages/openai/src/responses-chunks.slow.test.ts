import { describe, expect, it } from '@jest/globals';
import type { ModelChunk } from 'millrace';
import { dataOf, responsesBody, responsesStream } from '@millrace/fault-server';
import { told } from './conversation.test-support.js';
import { responsesReader } from './responses-chunks.js';

const reader = () =>
  responsesReader({
    vendor: 'Mine',
    server: 'Mine',
    toolName: (name) => name.replace('wire_', ''),
  });

const read = (...events: readonly unknown[]): readonly ModelChunk[] => {
  const { read: next } = reader();
  return withoutFacts(events.flatMap((data) => next({ data })));
};

const withoutFacts = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  chunks.filter(({ type }) => type !== 'facts');

const parsedStream = (answer: Parameters<typeof responsesStream>[0]): readonly unknown[] =>
  responsesStream(answer).map(dataOf);

const answer = {
  thinking: 'Hm, well.',
  text: 'Let me look.',
  toolCalls: [
    { id: 'c1', name: 'wire_weather', arguments: '{"city":"Oslo"}' },
    { id: 'c2', name: 'wire_weather', arguments: '{"city":"Rome"}' },
  ],
  usage: { input: 30, cached: 20, output: 5 },
};

const ended = (fields: object) => ({ type: 'response.completed', response: { ...fields } });

describe('a response', () => {
  it('R4: becomes thinking with what is kept of it, text, tool uses by place, usage and a finish', () => {
    const chunks = read(...parsedStream(answer));
    expect(chunks.slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 10, cacheReadTokens: 20, outputTokens: 5 } },
      { type: 'finish', finish: 'stop' },
    ]);
    const { text, thinking, signatures } = told(chunks.filter(({ type }) => type !== 'toolCall'));
    expect({ text, thinking }).toEqual({ text: 'Let me look.', thinking: 'Hm, well.' });
    expect(JSON.parse(signatures[0] ?? '')).toMatchObject({
      vendor: 'Mine',
      value: { type: 'reasoning', encrypted_content: 'gAAAAABFault' },
    });
    const uses = chunks.filter((chunk) => chunk.type === 'toolCall');
    expect(uses.find(({ id }) => id === 'c2')).toEqual({
      type: 'toolCall',
      index: 3,
      id: 'c2',
      name: 'weather',
    });
    const json = uses.filter(({ index }) => index === 3).map((use) => use.json ?? '');
    expect(json.join('')).toBe('{"city":"Rome"}');
  });

  it('X1: reads a whole answer by the same mapping', () => {
    const whole = told(reader().readWhole(responsesBody(answer)));
    expect(whole).toMatchObject({
      text: 'Let me look.',
      thinking: 'Hm, well.',
      uses: [
        { id: 'c1', name: 'weather', input: { city: 'Oslo' } },
        { id: 'c2', name: 'weather', input: { city: 'Rome' } },
      ],
      finish: ['stop'],
    });
    expect(whole.signatures).toHaveLength(1);
  });

  it('I18: is over with its last event', () => {
    const { isLast } = reader();
    const over = parsedStream(answer).map((data) => isLast?.({ data }));
    expect(over.indexOf(true)).toBe(over.length - 1);
    expect(isLast?.({ data: { type: 'response.incomplete' } })).toBe(true);
  });

  it.each([0, 1, 7])('X31: drops no event because of its number %d', (sequence_number) => {
    const event = { type: 'response.output_text.delta', delta: 'ha', sequence_number };
    expect(told(read(event, event)).text).toBe('haha');
  });

  it.each([
    [{ reason: 'max_output_tokens' }, 'length'],
    [{ reason: 'content_filter' }, 'filtered'],
    [null, 'length'],
  ])('finishes when it is left incomplete: %j', (incomplete_details, finish) => {
    const response = { status: 'incomplete', incomplete_details };
    expect(read({ type: 'response.incomplete', response })).toEqual([{ type: 'finish', finish }]);
    expect(withoutFacts(reader().readWhole({ ...response, output: [] }))).toEqual([
      { type: 'finish', finish },
    ]);
  });

  describe('X2: an item that is not complete cuts a complete response', () => {
    const items = {
      call: { type: 'function_call', id: 'f', call_id: 'c', name: 'weather', arguments: '{}' },
      custom: { type: 'custom_tool_call', id: 'f', call_id: 'c', name: 'weather', input: 'x' },
      message: { type: 'message', id: 'f', content: [{ type: 'output_text', text: 'Half' }] },
    };
    const finishOf = (...events: readonly unknown[]) => read(...events).at(-1);
    const cases = Object.entries(items).flatMap(([name, item]) =>
      [
        ['incomplete', 'length'],
        ['in_progress', 'length'],
        ['completed', 'stop'],
        [undefined, 'stop'],
      ].map(([status, finish]) => [name, status, finish, { ...item, status }] as const),
    );
    it.each(cases)('%s that is %s: %s', (_, _status, finish, item) => {
      const expected = { type: 'finish', finish };
      const added = {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress' },
      };
      const done = { type: 'response.output_item.done', output_index: 0, item };
      const output = [item];
      const whole = { status: 'completed', output };
      expect(finishOf(ended({ output }))).toEqual(expected);
      expect(finishOf(added, done, ended({ output: [] }))).toEqual(expected);
      expect(finishOf(added, ended({ output }))).toEqual(expected);
      expect(withoutFacts(reader().readWhole(whole)).at(-1)).toEqual(expected);
      // The response overrides the item before it.
      const completed = { ...item, status: 'completed' };
      expect(finishOf(added, done, ended({ output: [completed] }))).toMatchObject({
        finish: 'stop',
      });
    });

    it('but for items that the vendor runs', () => {
      const item = { type: 'image_generation_call', id: 'i', status: 'in_progress' };
      expect(finishOf(ended({ output: [item] }))).toMatchObject({ finish: 'stop' });
    });

    it('as do the details of a response that is called complete', () => {
      const finishes = [
        { reason: 'max_output_tokens' },
        { reason: 'content_filter' },
        {},
        null,
      ].map((incomplete_details) => finishOf(ended({ incomplete_details, output: [items.call] })));
      expect(finishes).toMatchObject(
        ['length', 'filtered', 'stop', 'stop'].map((finish) => ({ finish })),
      );
    });
  });

  it('X1: fails if it failed, by the code', () => {
    const response = {
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: 'Too much.' },
    };
    expect(() => read({ type: 'response.failed', response })).toThrow(
      expect.objectContaining({ code: 'rateLimited', retryable: true }),
    );
    const broken = { status: 'failed', error: null };
    expect(() => read({ type: 'response.failed', response: broken })).toThrow(
      expect.objectContaining({ code: 'server' }),
    );
  });

  it.each([
    ['completed', 'stop'],
    ['incomplete', 'length'],
  ])('X8: finishes by the event if there is no status: %s', (what, finish) => {
    expect(read({ type: `response.${what}`, response: { id: 'r' } })).toEqual([
      { type: 'finish', finish },
    ]);
    expect(() => read({ type: 'response.failed', response: {} })).toThrow(/failed/u);
  });

  it('X8: reads, once, text that does not come in pieces', () => {
    const text = (what: string, fields: object, place: object) => ({
      type: `response.output_text.${what}`,
      ...fields,
      ...place,
    });
    const item = (...texts: readonly string[]) => ({
      type: 'response.output_item.done',
      output_index: 0,
      item: { type: 'message', content: texts.map((it) => ({ type: 'output_text', text: it })) },
    });
    const refusal = {
      type: 'response.output_item.done',
      output_index: 0,
      item: { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] },
    };
    const [here, there] = [0, 1].map((content_index) => ({ output_index: 0, content_index }));
    const said = (...events: readonly unknown[]) => told(read(...events)).text;
    expect(said(text('done', { text: 'Hi' }, here ?? {}), item('Hi'))).toBe('Hi');
    expect(said(text('delta', { delta: 'Hi' }, here ?? {}), item('Hi', ' you'))).toBe('Hi you');
    expect(
      said(
        text('delta', { delta: 'Hi' }, here ?? {}),
        text('done', { text: 'Hi' }, here ?? {}),
        text('done', { text: ' you' }, there ?? {}),
        item('Hi', ' you'),
      ),
    ).toBe('Hi you');
    expect(
      said(text('delta', { delta: 'Hi' }, {}), text('done', { text: 'Hi' }, {}), item('Hi')),
    ).toBe('Hi');
    expect(said(text('done', { text: 'Hi' }, {}), item('Hi'))).toBe('Hi');
    expect(told(read(refusal, ended({ status: 'completed' })))).toMatchObject({
      text: 'No.',
      finish: ['refusal'],
    });
  });

  it('X1: does not finish by a status that is no end', () => {
    expect(read({ type: 'response.cancelled', response: { status: 'cancelled' } })).toEqual([]);
    expect(reader().readWhole({ status: 'queued', output: [] })).toEqual([]);
  });

  it('says a refusal as text, and finishes as one', () => {
    const refusal = { type: 'response.refusal.delta', delta: 'I cannot.' };
    expect(read(refusal, ended({ status: 'completed' }))).toEqual([
      { type: 'text', text: 'I cannot.' },
      { type: 'finish', finish: 'refusal' },
    ]);
    const output = [{ type: 'message', content: [{ type: 'refusal', refusal: 'I cannot.' }] }];
    expect(told(reader().readWhole({ status: 'completed', output })).finish).toEqual(['refusal']);
  });

  it('sets the parts of a summary apart, and reads open reasoning', () => {
    const part = (summary_index: number) => ({
      type: 'response.reasoning_summary_part.added',
      summary_index,
    });
    const text = (delta: string) => ({ type: 'response.reasoning_summary_text.delta', delta });
    expect(told(read(part(0), text('One.'), part(1), text('Two.'))).thinking).toBe('One.\n\nTwo.');
    expect(told(read({ type: 'response.reasoning_text.delta', delta: 'Hm.' })).thinking).toBe(
      'Hm.',
    );
  });

  it('X8: takes arguments that do not come in pieces from the item that is done', () => {
    const item = { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"a":1}' };
    const events = ['added', 'done'].map((what) => ({
      type: `response.output_item.${what}`,
      output_index: 0,
      item: what === 'done' ? item : { ...item, arguments: '' },
    }));
    expect(read(...events)).toEqual([
      { type: 'toolCall', index: 0, id: 'c1', name: 'weather' },
      { type: 'toolCall', index: 0, json: '{"a":1}' },
    ]);
  });

  it.each(['web_search_call', 'mcp_list_tools', 'hologram_call'])(
    'X30: keeps the item %s, which the vendor understands, and runs nothing',
    (type) => {
      const item = { type, id: 'ws_1', status: 'completed' };
      const block = { type: 'vendor', vendor: 'Mine', kind: type, data: item };
      const chunks = [{ type: 'block', block }];
      expect(read({ type: 'response.output_item.done', output_index: 0, item })).toEqual(chunks);
      expect(reader().readWhole({ status: 'completed', output: [item] })).toEqual(
        expect.arrayContaining(chunks),
      );
      const started = read(
        { type: 'response.output_item.added', output_index: 0, item },
        ended({ status: 'completed' }),
      );
      expect(started).toEqual([...chunks, { type: 'finish', finish: 'stop' }]);
    },
  );

  const action = (item: Readonly<Record<string, unknown>>) =>
    read({ type: 'response.output_item.done', output_index: 0, item })[0];

  it.each([
    ['shell_call', { action: { commands: ['ls'] } }, 'shell', { commands: ['ls'] }],
    ['local_shell_call', { action: { command: ['ls'] } }, 'local_shell', { command: ['ls'] }],
    ['computer_call', { action: { type: 'screenshot' } }, 'computer', { type: 'screenshot' }],
    ['computer_call', { actions: [{ type: 'wait' }] }, 'computer', { actions: [{ type: 'wait' }] }],
    [
      'apply_patch_call',
      { operation: { type: 'delete_file' } },
      'apply_patch',
      { type: 'delete_file' },
    ],
  ])('X30: suspends for the program: %s', (type, fields, name, input) => {
    const item = { type, call_id: 'c1', ...fields };
    expect(action(item)).toEqual({
      type: 'toolCall',
      index: 0,
      id: 'c1',
      name,
      suspends: { request: { type } },
      vendorData: { vendor: 'Mine', data: item },
      json: JSON.stringify(input),
    });
  });

  it('X30: suspends for an approval of a hosted tool', () => {
    const item = {
      type: 'mcp_approval_request',
      id: 'mcpr_1',
      name: 'roll',
      server_label: 'dice',
      arguments: '{"dice":"2d4"}',
    };
    expect(action(item)).toMatchObject({
      id: 'mcpr_1',
      name: 'approve_roll',
      suspends: {
        request: { tool: 'roll', server: 'dice', input: { dice: '2d4' } },
        from: 'client',
      },
      json: '{"dice":"2d4"}',
    });
  });

  it('X30: suspends for nothing that the vendor runs itself, or has not completed', () => {
    const item = { type: 'shell_call', call_id: 'c1', action: {}, id: 's1' };
    const contained = { ...item, environment: { type: 'container_reference' } };
    const calls = (chunks: readonly ModelChunk[]) =>
      told(chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1)).uses;
    const done = (it: object, output_index: number) => ({
      type: 'response.output_item.done',
      output_index,
      item: it,
    });
    expect(calls(read(done(contained, 0)))).toEqual([]);
    const output = { type: 'shell_call_output', call_id: 'c1' };
    expect(calls(read(done(item, 0), done(output, 1), ended({ status: 'completed' })))).toEqual([]);
    const added = { type: 'response.output_item.added', output_index: 0, item };
    expect(calls(read(added, ended({ status: 'completed' })))).toEqual([]);
  });

  it('B: makes calls of custom tools, whose text is an argument', () => {
    const item = { type: 'custom_tool_call', id: 'ctc', call_id: 'c1', name: 'wire_patch' };
    const delta = (text: string) => ({
      type: 'response.custom_tool_call_input.delta',
      output_index: 0,
      item_id: 'ctc',
      delta: text,
    });
    const input = 'a "b"\n😀';
    const chunks = read(
      { type: 'response.output_item.added', output_index: 0, item: { ...item, input: '' } },
      ...input.split('').map(delta),
      { type: 'response.output_item.done', output_index: 0, item: { ...item, input } },
      ended({ status: 'completed', output: [{ ...item, input }] }),
    );
    expect(chunks.map(({ type }) => type)).not.toContain('restart');
    const json = chunks.map((chunk) => (chunk.type === 'toolCall' ? (chunk.json ?? '') : ''));
    expect(JSON.parse(json.join(''))).toEqual({ input });
    expect(chunks[0]).toMatchObject({ vendorData: { data: { type: 'custom_tool_call' } } });
  });

  it('D: cites the sources of text, each once', () => {
    const annotation = { type: 'url_citation', url: 'https://example.com', title: 'Snow' };
    const event = {
      type: 'response.output_text.annotation.added',
      output_index: 0,
      content_index: 0,
      annotation_index: 0,
      annotation,
    };
    const part = { type: 'output_text', text: 'Snow', annotations: [annotation] };
    const item = { type: 'message', id: 'm', content: [part] };
    const text = { type: 'response.output_text.delta', output_index: 0, content_index: 0 };
    const citation = {
      url: 'https://example.com',
      title: 'Snow',
      vendorData: { vendor: 'Mine', data: annotation },
    };
    const expected = [
      { type: 'text', text: 'Snow' },
      { type: 'citation', citation },
      { type: 'finish', finish: 'stop' },
    ];
    const delta = { ...text, delta: 'Snow' };
    const end = ended({ status: 'completed', output: [item] });
    expect(read(delta, event, event, end)).toEqual(expected);
    expect(read(delta, end)).toEqual(expected);
    expect(read(end)).toEqual(expected);
  });

  it('E: reports the facts of the response', () => {
    const end = ended({
      status: 'completed',
      id: 'r1',
      model: 'gpt-5-2025',
      service_tier: 'flex',
      output: [
        { type: 'web_search_call', id: 'w' },
        { type: 'function_call', call_id: 'c', name: 'x' },
      ],
      usage: { output_tokens: 9, output_tokens_details: { reasoning_tokens: 5 } },
    });
    expect(reader().read({ data: end })).toContainEqual({
      type: 'facts',
      facts: {
        name: 'Mine',
        id: 'r1',
        model: 'gpt-5-2025',
        serviceTier: 'flex',
        reasoningTokens: 5,
        stopReason: 'completed',
        toolUses: { web_search: 1 },
      },
    });
  });

  it('R4: starts a new message within the answer, with its phase', () => {
    const message = (phase: string, text: string) => ({
      type: 'message',
      phase,
      content: [{ type: 'output_text', text }],
    });
    const output = [message('commentary', 'Let me check.'), message('final_answer', 'It snows.')];
    expect(withoutFacts(reader().readWhole({ status: 'completed', output }))).toEqual([
      { type: 'textStart', phase: 'commentary' },
      { type: 'text', text: 'Let me check.' },
      { type: 'textStart', separate: true, phase: 'final_answer' },
      { type: 'text', text: 'It snows.' },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it.each([
    [null],
    ['text'],
    [{}],
    [{ type: 'response.created', response: { status: 'in_progress', usage: null, error: null } }],
    [{ type: 'response.output_item.added' }],
    [{ type: 'response.output_item.done', item: null }],
    [{ type: 'response.output_text.delta', delta: 7 }],
    [{ type: 'response.output_text.done', text: '' }],
    [{ type: 'response.something.new', delta: 'x' }],
    [{ type: 'keepalive', sequence_number: 4 }],
    [{ output: [null, 7, { type: 'message' }, { type: 'message', content: [null] }] }],
  ])('X5: passes over what says nothing: %j', (data) => {
    expect(read(data)).toEqual([]);
    expect(reader().readWhole(data)).toEqual([]);
  });
});
