import { describe, expect, it } from '@jest/globals';
import { wires } from '../scenario.js';
import type { Answer } from './answer.js';
import { bodyOf, streamOf } from './wires.js';

interface Event {
  readonly name: string | undefined;
  readonly data: unknown;
}

const read = (events: readonly string[]): readonly Event[] =>
  events
    .filter((event) => event !== 'data: [DONE]\n\n')
    .map((event) => {
      const [, name, data = ''] = /^(?:event: (\S+)\n)?data: (\{[^\n]*\})\n\n$/.exec(event) ?? [];
      return { name, data: JSON.parse(data) as unknown };
    });

/** What stands at a path like `choices.0.delta`. */
const at = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((it, key) => (it as Record<string, unknown> | undefined)?.[key], value);

/** What all events say at a path, as far as they say it. */
const all = (events: readonly { readonly data: unknown }[], path: string): readonly unknown[] =>
  events.map(({ data }) => at(data, path)).filter((it) => it !== undefined && it !== null);

const full: Answer = {
  thinking: 'Where is it? Oslo.',
  text: ['Let me ', 'look.'],
  toolCalls: [{ arguments: '{"city":"Oslo"}' }, { id: 'x', name: 'clock', arguments: '' }],
  usage: { input: 30, cached: 10, output: 12 },
};

describe('streamOf', () => {
  it('says one thing an event, in a form that any parser reads', () => {
    for (const wire of wires) expect(() => read(streamOf(wire, full))).not.toThrow();
  });

  it('chat: role, deltas, finish, usage without choices, [DONE]', () => {
    const events = read(streamOf('chat', full));
    expect(at(events[0]?.data, 'choices.0.delta')).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
    });
    expect(all(events, 'choices.0.delta.reasoning_content').join('')).toBe('Where is it? Oslo.');
    expect(all(events, 'choices.0.delta.content').join('')).toBe('Let me look.');
    const pieces = all(events, 'choices.0.delta.tool_calls.0').map((data) => ({ data }));
    const ofCall = (index: number) => pieces.filter(({ data }) => at(data, 'index') === index);
    expect(all(ofCall(0), 'function.arguments').join('')).toBe('{"city":"Oslo"}');
    expect(all(ofCall(1), 'function.arguments')).toEqual(['']);
    expect(all(pieces, 'id')).toEqual(['call_Fa01', 'x']);
    expect(all(events, 'choices.0.finish_reason')).toEqual(['tool_calls']);
    expect(events.at(-1)?.data).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 30,
        completion_tokens: 12,
        prompt_tokens_details: { cached_tokens: 10 },
      },
    });
    expect(new Set(all(events, 'id')).size).toBe(1);
  });

  it('responses: events are numbered, items are added and done, the last holds the whole', () => {
    const events = read(streamOf('responses', full));
    expect(all(events, 'sequence_number')).toEqual(events.map((_, index) => index));
    expect(all(events, 'type')).toEqual(events.map(({ name }) => name));
    const named = (name: string) => events.filter((event) => event.name === `response.${name}`);
    expect(all(named('output_item.added'), 'item.type')).toEqual([
      'reasoning',
      'message',
      'function_call',
      'function_call',
    ]);
    expect(at(events.at(-1)?.data, 'response')).toMatchObject({
      status: 'completed',
      error: null,
      output: all(named('output_item.done'), 'item'),
      usage: { input_tokens: 30, input_tokens_details: { cached_tokens: 10 }, output_tokens: 12 },
    });
    const deltas = all(named('function_call_arguments.delta'), 'delta');
    expect(deltas.join('')).toBe('{"city":"Oslo"}');
  });

  it('messages: a start, blocks that are opened and closed in turn, the stop reason, the stop', () => {
    const events = read(streamOf('messages', full));
    expect(all(events, 'type')).toEqual(events.map(({ name }) => name));
    const names = events.map(({ name }) => name?.replace('content_block_', ''));
    expect(names.join(' ').replaceAll(/(delta )+/g, 'delta ')).toBe(
      `message_start ping ${'start delta stop '.repeat(4)}message_delta message_stop`,
    );
    expect(all(events, 'content_block.type')).toEqual(['thinking', 'text', 'tool_use', 'tool_use']);
    expect(all(events, 'delta.partial_json').join('')).toBe('{"city":"Oslo"}');
    expect(events.at(-2)?.data).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: { input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 12 },
    });
  });

  it('ends as the answer does', () => {
    const ends = wires.map((wire) => {
      const finishes = (['stop', 'length', 'filtered', 'refusal'] as const).map((finish) => {
        const text = JSON.stringify([
          streamOf(wire, { text: 'a', finish }),
          bodyOf(wire, { text: 'a', finish }),
        ]);
        const reasons = /(?:finish_reason|stop_reason|reason|status)\\*": ?\\*"(\w+)/g;
        return [...text.matchAll(reasons)].map(([, reason]) => reason).at(-1);
      });
      return [wire, ...finishes];
    });
    expect(ends).toEqual([
      ['chat', 'stop', 'length', 'content_filter', 'stop'],
      ['responses', 'completed', 'incomplete', 'incomplete', 'completed'],
      ['messages', 'end_turn', 'max_tokens', 'refusal', 'refusal'],
    ]);
  });
});

describe('bodyOf', () => {
  it('says the same in one body', () => {
    expect(bodyOf('chat', full)).toMatchObject({
      object: 'chat.completion',
      choices: [
        { message: { content: 'Let me look.', tool_calls: [{ id: 'call_Fa01' }, { id: 'x' }] } },
      ],
    });
    expect(bodyOf('messages', full)).toMatchObject({
      content: [
        { type: 'thinking' },
        { text: 'Let me look.' },
        { input: { city: 'Oslo' } },
        { id: 'x', input: {} },
      ],
      stop_reason: 'tool_use',
    });
    const [, , call] = bodyOf('responses', full)['output'] as Record<string, unknown>[];
    expect(call).toMatchObject({ call_id: 'call_Fa01', arguments: '{"city":"Oslo"}' });
  });
});
