import { describe, expect, it } from '@jest/globals';
import type { ModelChunk } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import { responsesBody, responsesStream } from '@millrace/fault-server';
import { encodeSignature } from '@millrace/wire';
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
  return events.flatMap((data) => next({ data }));
};

const parsedStream = (answer: Parameters<typeof responsesStream>[0]): readonly unknown[] =>
  responsesStream(answer).map((event) => parsedJson(/^data: (.*)$/mu.exec(event)?.[1] ?? ''));

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

  it('I4: reads an event once that comes twice', () => {
    const events = parsedStream(answer);
    expect(read(...events.flatMap((event) => [event, event]))).toEqual(read(...events));
  });

  it('X5: does not take events for repeated that are all numbered by 0', () => {
    const event = { type: 'response.output_text.delta', delta: 'ha', sequence_number: 0 };
    expect(told(read(event, event)).text).toBe('haha');
  });

  it.each([
    [{ reason: 'max_output_tokens' }, 'length'],
    [{ reason: 'content_filter' }, 'filtered'],
    [null, 'length'],
  ])('finishes when it is left incomplete: %j', (incomplete_details, finish) => {
    const response = { status: 'incomplete', incomplete_details };
    expect(read({ type: 'response.incomplete', response })).toEqual([{ type: 'finish', finish }]);
    expect(reader().readWhole({ ...response, output: [] })).toEqual([{ type: 'finish', finish }]);
  });

  it('X1: fails where it failed, by the code', () => {
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
  ])('X8: finishes by the event where there is no status: %s', (what, finish) => {
    expect(read({ type: `response.${what}`, response: { id: 'r' } })).toEqual([
      { type: 'finish', finish },
    ]);
    expect(() => read({ type: 'response.failed', response: {} })).toThrow(/failed/u);
  });

  it('X8: reads a text that does not come in pieces, once', () => {
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
      { type: 'toolCall', index: 0, id: 'c1', name: 'weather', json: '{"a":1}' },
    ]);
  });

  it('keeps the calls of tools that ran at the vendor, and runs none of them', () => {
    const item = { type: 'web_search_call', id: 'ws_1', status: 'completed' };
    expect(read({ type: 'response.output_item.done', output_index: 0, item })).toEqual([
      {
        type: 'thinking',
        text: '',
        signature: encodeSignature('Mine', 'item', item),
        redacted: true,
      },
    ]);
    const foreign = { type: 'computer_call', id: 'cu_1' };
    expect(read({ type: 'response.output_item.done', item: foreign })).toEqual([]);
  });

  it('keeps what a message is called, in front of its text', () => {
    const item = { type: 'message', phase: 'commentary', content: [] };
    const chunk = {
      type: 'thinking',
      text: '',
      signature: encodeSignature('Mine', 'phase', 'commentary'),
      redacted: true,
    };
    expect(read({ type: 'response.output_item.added', output_index: 0, item })).toEqual([chunk]);
    expect(read({ type: 'response.output_item.done', output_index: 0, item })).toEqual([]);
    expect(reader().readWhole({ output: [item] })).toEqual([chunk]);
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
