import { describe, expect, it } from '@jest/globals';
import type { AssistantBlock, AssistantMessage, ModelChunk } from 'millrace';
import { toolNames, toWireId } from '@millrace/wire';
import fc from 'fast-check';
import { toAssistantBlocks } from './assistant-blocks.js';
import { conversation } from './conversations.test-support.js';
import { createMessagesReader } from './messages-events.js';

type Data = Readonly<Record<string, unknown>>;

const same = (name: string): string => name;

const readAll = (...events: readonly unknown[]): readonly ModelChunk[] => {
  const { read } = createMessagesReader(same);
  return events.flatMap((data) => read({ data }));
};

/** The chunks without facts. */
const contentOf = (...events: readonly unknown[]): readonly ModelChunk[] =>
  readAll(...events).filter(({ type }) => type !== 'facts');

const begin = (index: unknown, block: Data): Data => ({
  type: 'content_block_start',
  index,
  content_block: block,
});
const delta = (index: unknown, it: Data): Data => ({
  type: 'content_block_delta',
  index,
  delta: it,
});
const stop = (index: unknown): Data => ({ type: 'content_block_stop', index });
const end = (reason: unknown, usage?: unknown): Data => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null },
  usage,
});
const json = (text: unknown): Data => ({ type: 'input_json_delta', partial_json: text });

describe('C5: the unseen work of a message', () => {
  const workIn = (...events: readonly unknown[]): string | undefined => {
    const { read, working } = createMessagesReader(same);
    events.forEach((data) => read({ data }));
    return working?.();
  };
  const text = begin(0, { type: 'text', text: 'x' });
  const search = begin(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} });
  const found = begin(2, { type: 'web_search_tool_result', tool_use_id: 's', content: [] });
  const ping = { type: 'ping' };

  it('is an open block that is not text, or a tool of the vendor until its result', () => {
    expect(workIn()).toBeUndefined();
    expect(workIn(begin(0, { type: 'thinking', thinking: '' }), ping)).toBe('thinking');
    expect(workIn(begin(0, { type: 'thinking', thinking: '' }), stop(0), ping)).toBeUndefined();
    expect(workIn(text, ping)).toBeUndefined();
    expect(workIn(text, stop(0), search)).toBe('server_tool_use');
    expect(workIn(text, stop(0), search, stop(1), ping)).toBe('web_search');
    expect(workIn(search, stop(1), found, stop(2), ping)).toBeUndefined();
    expect(workIn(begin(0, { type: 'tool_use', id: 't', name: 't', input: {} }))).toBe('tool_use');
  });
});

describe('the reader of messages', () => {
  it('R4: reads text, thinking with its signature, and tool uses', () => {
    expect(
      contentOf(
        begin(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
        delta(0, { type: 'signature_delta', signature: 'sig' }),
        stop(0),
        begin(1, { type: 'redacted_thinking', data: 'hidden' }),
        stop(1),
        begin(2, { type: 'text', text: '' }),
        delta(2, { type: 'text_delta', text: 'Let me see.' }),
        stop(2),
        begin(3, { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }),
        delta(3, json('')),
        delta(3, json('{"city":')),
        delta(3, json('"Oslo"}')),
        stop(3),
        end('tool_use'),
        { type: 'message_stop' },
      ),
    ).toEqual([
      { type: 'thinking', text: 'Hm.' },
      { type: 'thinking', text: '', signature: 'sig' },
      { type: 'thinking', text: '', signature: 'hidden', redacted: true },
      { type: 'text', text: 'Let me see.' },
      { type: 'toolCall', index: 3, id: 'toolu_1', name: 'weather' },
      { type: 'toolCall', index: 3, json: '' },
      { type: 'toolCall', index: 3, json: '{"city":' },
      { type: 'toolCall', index: 3, json: '"Oslo"}' },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('R4: counts usage as it is reported, cached tokens apart; null and absent fields are ignored', () => {
    const usage = {
      input_tokens: 5,
      output_tokens: 1,
      cache_read_input_tokens: 7,
      cache_creation_input_tokens: null,
    };
    expect(
      readAll(
        { type: 'message_start', message: { usage } },
        end(null, { output_tokens: 9, input_tokens: null }),
        end('end_turn', null),
      ),
    ).toEqual([
      { type: 'usage', usage: { inputTokens: 5, outputTokens: 1, cacheReadTokens: 7 } },
      { type: 'usage', usage: { outputTokens: 9 } },
      { type: 'facts', facts: { name: 'Anthropic', stopReason: 'end_turn' } },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  describe('X8: reads the content of message_start once', () => {
    const opening = (...content: readonly unknown[]): Data => ({
      type: 'message_start',
      message: { content, stop_reason: null },
    });
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 'sig' };
    const hello = { type: 'text', text: 'Hello.' };
    const use = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } };
    const stopped = { type: 'finish', finish: 'stop' };
    const chunks = [
      { type: 'thinking', text: 'Hm.' },
      { type: 'thinking', text: '', signature: 'sig' },
      { type: 'text', text: 'Hello.' },
      { type: 'toolCall', index: 2, id: 'toolu_1', name: 'weather' },
      { type: 'toolCall', index: 2, input: { city: 'Oslo' } },
    ];

    it('if nothing else comes', () => {
      expect(contentOf(opening(thought, hello, use), end('tool_use'))).toEqual([
        ...chunks,
        stopped,
      ]);
    });

    it('if the stop reason is in it, too, as soon as the message stops', () => {
      const message = { content: [hello], stop_reason: 'max_tokens' };
      const start = { type: 'message_start', message };
      expect(contentOf(start)).toEqual([]);
      expect(contentOf(start, { type: 'message_stop' })).toEqual([
        chunks[2],
        { type: 'finish', finish: 'length' },
      ]);
    });

    it('if later blocks stream, in order', () => {
      const streamed = [
        begin(2, { ...use, input: {} }),
        delta(2, json('{"city":"Oslo"}')),
        stop(2),
        end('tool_use'),
      ];
      expect(contentOf(opening(thought, hello), ...streamed)).toEqual([
        ...chunks.slice(0, 3),
        { type: 'toolCall', index: 2, id: 'toolu_1', name: 'weather' },
        { type: 'toolCall', index: 2, json: '{"city":"Oslo"}' },
        stopped,
      ]);
    });

    it('if the stream repeats its blocks', () => {
      const repeated = [
        begin(0, { type: 'thinking', thinking: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
        delta(0, { type: 'signature_delta', signature: 'sig' }),
        stop(0),
        begin(1, hello),
        stop(1),
        begin(2, use),
        stop(2),
        end('tool_use'),
      ];
      expect(contentOf(opening(thought, hello, use), ...repeated)).toEqual([...chunks, stopped]);
    });

    it('if the stream continues and stops its blocks', () => {
      const continued = [
        stop(0),
        delta(1, { type: 'text_delta', text: ' You.' }),
        stop(1),
        end('end_turn'),
      ];
      expect(contentOf(opening(thought, hello), ...continued)).toEqual([
        ...chunks.slice(0, 3),
        { type: 'text', text: ' You.' },
        stopped,
      ]);
    });

    it.each([
      ['nothing', [], 1],
      ['text', [hello], 1],
      ['thinking', [thought], 1],
      ['a call', [use], 0],
      ['text and a call', [hello, use], 0],
      [
        'a tool that the vendor runs',
        [{ type: 'server_tool_use', id: 's', name: 'x', input: {} }],
        0,
      ],
    ])(
      'and finds the call that the stop reason announces, or reports it missing: %s',
      (_, blocks, count) => {
        const found = contentOf(opening(...blocks), end('tool_use'));
        expect(found.filter(({ type }) => type === 'malformed')).toHaveLength(count);
        expect(found.at(-1)).toEqual({ type: 'finish', finish: 'stop' });
      },
    );

    it('if the stream counts its own blocks from 0 again', () => {
      const other = { ...use, id: 'toolu_2' };
      expect(contentOf(opening(use), begin(0, other), stop(0), end('tool_use'))).toEqual([
        { ...chunks[3], index: 0 },
        { ...chunks[4], index: 0 },
        { ...chunks[3], index: 0, id: 'toolu_2' },
        { ...chunks[4], index: 0 },
        stopped,
      ]);
    });
  });

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'refusal'],
    ['pause_turn', 'pause'],
    ['not_known_yet', 'stop'],
  ] as const)('reads the stop reason %s as %s', (reason, finish) => {
    expect(contentOf(end(reason))).toEqual([{ type: 'finish', finish }]);
  });

  it('X5: takes no notice of events that it does not know', () => {
    const strange: readonly unknown[] = [
      null,
      7,
      [],
      {},
      { type: 'ping' },
      { type: 'tomorrow', content_block: { type: 'text', text: 'no' } },
      { type: 'message_start' },
      { type: 'message_start', message: null },
      { type: 'message_delta' },
      { type: 'content_block_start' },
      { type: 'content_block_start', index: 0, content_block: 'text' },
      { type: 'content_block_delta', index: 0 },
      delta(0, { type: 'citations_delta', citation: {} }),
      delta(0, { type: 'text_delta' }),
      stop(5),
    ];
    expect(readAll(...strange)).toEqual([]);
  });

  it('X1: throws nothing but an error with a code, no matter what an event holds', () => {
    const { read, readWhole } = createMessagesReader(same);
    const type = fc.constantFrom(
      ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'text', 'tool_use', 'input_json_delta', 'thinking', 'server_tool_use'],
    );
    const inner = fc.record(
      { type, text: fc.jsonValue(), input: fc.jsonValue(), partial_json: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const event = fc.record(
      { type, index: fc.jsonValue(), content_block: inner, delta: inner, usage: fc.jsonValue() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(event, fc.jsonValue()), (data) => {
        try {
          read({ data });
          readWhole(data);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalidResponse', retryable: true });
        }
      }),
    );
  });

  it.each([
    ['no index', undefined, {}],
    ['an index beyond all bounds', 1e9, { index: 1e9 }],
    ['an index that is no number', '0', {}],
  ])('X7: passes on a tool use with %s', (_, index, expected) => {
    expect(
      readAll(
        begin(index, { type: 'tool_use', id: '__proto__', name: 'weather' }),
        delta(index, json('{}')),
      ),
    ).toEqual([
      { type: 'toolCall', ...expected, id: '__proto__', name: 'weather' },
      { type: 'toolCall', ...expected, json: '{}' },
    ]);
  });

  it('X8: takes arguments that come at the start, or as an object', () => {
    const tool = { type: 'tool_use', id: 'a', name: 'weather' };
    const city = { city: 'Oslo' };
    const begun = begin(0, { ...tool, input: city });
    expect(readAll(begun, stop(0))).toMatchObject([{ name: 'weather' }, { input: city }]);
    expect(readAll(begin(0, tool), delta(0, json(city)))).toMatchObject([{}, { input: city }]);
    expect(readAll(begin(0, { ...tool, input: '{"city":"Oslo"}' }), stop(0))).toMatchObject([
      {},
      { json: '{"city":"Oslo"}' },
    ]);
    // Streamed arguments replace those of the start, which may be incomplete.
    expect(readAll(begun, delta(0, json('{"city":"Rome"}')), stop(0))).toEqual([
      { type: 'toolCall', index: 0, id: 'a', name: 'weather' },
      { type: 'toolCall', index: 0, json: '{"city":"Rome"}' },
    ]);
  });

  it('X31: starts again with another message, and not with the same one again', () => {
    const starts = (id: string) => ({ type: 'message_start', message: { id, content: [] } });
    const text = (words: string) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: words },
    });
    const readAll = (...events: readonly object[]) => {
      const { read } = createMessagesReader((name) => name);
      return events.flatMap((data) => read({ data })).filter(({ type }) => type !== 'facts');
    };
    expect(readAll(starts('a'), text('A'), starts('a'), text('B'))).toEqual([
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B' },
    ]);
    expect(readAll(starts('a'), text('A'), starts('b'), text('B'))).toMatchObject([
      { type: 'text', text: 'A' },
      { type: 'restart', isSameRequest: true },
      { type: 'text', text: 'B' },
    ]);
  });

  it('X16: does not pause with a call that needs its result', () => {
    const call = { type: 'tool_use', id: 't', name: 'f', input: {} };
    const paused = (...content: readonly object[]) =>
      createMessagesReader((name) => name)
        .readWhole({ content, stop_reason: 'pause_turn' })
        .at(-1);
    expect(paused({ type: 'text', text: 'Hm.' })).toEqual({ type: 'finish', finish: 'pause' });
    expect(paused(call)).toEqual({ type: 'finish', finish: 'stop' });
  });

  it('X30: refuses a delta that has a value, but no type', () => {
    const { read } = createMessagesReader((name) => name);
    const delta = (value: object) => ({ type: 'content_block_delta', index: 0, delta: value });
    expect(read({ data: delta({}) })).toEqual([]);
    expect(() => read({ data: delta({ text: 'A' }) })).toThrow(/a delta without a type/u);
  });

  it('X8: takes text and a signature that come at the start of their block', () => {
    expect(
      readAll(
        begin(0, { type: 'thinking', thinking: 'H', signature: 'sig' }),
        delta(0, { type: 'thinking_delta', thinking: 'm.' }),
        stop(0),
        begin(1, { type: 'text', text: 'Hi' }),
      ),
    ).toEqual([
      { type: 'thinking', text: 'H' },
      { type: 'thinking', text: 'm.' },
      { type: 'thinking', text: '', signature: 'sig' },
      { type: 'text', text: 'Hi' },
    ]);
    expect(
      readAll(
        begin(0, { type: 'thinking', thinking: '', signature: 'early' }),
        delta(0, { type: 'signature_delta', signature: 'late' }),
        stop(0),
      ),
    ).toEqual([{ type: 'thinking', text: '', signature: 'late' }]);
  });

  it('X8: keeps what Anthropic has done itself, so that it can be sent back in its place', () => {
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search' };
    const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
    const chunks = readAll(
      begin(0, { ...search, input: {} }),
      delta(0, json('{"query":')),
      delta(0, json('"Oslo"}')),
      stop(0),
      begin(1, found),
      stop(1),
      end('pause_turn'),
    );
    expect(chunks.map(({ type }) => type)).toEqual(['block', 'block', 'facts', 'finish']);
    expect(toAssistantBlocks(messageOf(chunks), { toolName: same, toolId: toWireId })).toEqual([
      { ...search, input: { query: 'Oslo' } },
      found,
    ]);
  });

  it('I18: is over with `message_stop`', () => {
    const { isLast } = createMessagesReader(same);
    expect(isLast?.({ data: end('end_turn') })).toBe(false);
    expect(isLast?.({ data: { type: 'message_stop' } })).toBe(true);
  });

  it('reads a whole answer as it reads a stream', () => {
    const { readWhole } = createMessagesReader((name) => `our ${name}`);
    const body = {
      type: 'message',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
        { type: 'text', text: 'Hi' },
        { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Oslo' } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 4 },
    };
    expect(readWhole(body)).toEqual([
      { type: 'usage', usage: { inputTokens: 3, outputTokens: 4 } },
      { type: 'facts', facts: { name: 'Anthropic', stopReason: 'tool_use' } },
      { type: 'thinking', text: 'Hm.' },
      { type: 'thinking', text: '', signature: 'sig' },
      { type: 'text', text: 'Hi' },
      { type: 'toolCall', index: 2, id: 'a', name: 'our weather' },
      { type: 'toolCall', index: 2, input: { city: 'Oslo' } },
      { type: 'finish', finish: 'stop' },
    ]);
    expect(readWhole({ message: 'It works!' })).toEqual([]);
    expect(readWhole({ ...body, stop_reason: null }).at(-1)?.type).not.toBe('finish');
  });

  it('R4: gives back what was sent: text, thinking with its signatures, and tool uses', () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        for (const message of messages) {
          if (message.role !== 'assistant') continue;
          const names = toolNames([]);
          const toolName = (name: string): string => names.toWire(name);
          const content = toAssistantBlocks(message, { toolName, toolId: toWireId });
          const { readWhole } = createMessagesReader(names.fromWire);
          const back = messageOf(readWhole({ content, stop_reason: 'end_turn' }));
          expect(back.content).toEqual(expectedOf(message));
        }
      }),
    );
  });
});

/** Folds whole chunks into a message. */
const messageOf = (chunks: readonly ModelChunk[]): AssistantMessage => {
  const content: AssistantBlock[] = [];
  for (const chunk of chunks) {
    const last = content.at(-1);
    if (chunk.type === 'text') content.push({ type: 'text', text: chunk.text });
    if (chunk.type === 'thinking') {
      const { signature, redacted } = chunk;
      const sealed = {
        ...(signature === undefined ? {} : { signature }),
        ...(redacted === undefined ? {} : { redacted }),
      };
      if (last?.type === 'thinking' && last.signature === undefined && redacted === undefined) {
        content[content.length - 1] = { ...last, ...sealed };
      } else content.push({ type: 'thinking', text: chunk.text, ...sealed });
    }
    if (chunk.type === 'block') content.push(chunk.block);
    if (chunk.type === 'toolCall') {
      const { id = '', name = '', input } = chunk;
      if (last?.type === 'tool_call' && input !== undefined) {
        const given = input as Readonly<Record<string, unknown>>;
        content[content.length - 1] = { ...last, input: given };
      } else content.push({ type: 'tool_call', id, name, input: {} });
    }
  }
  return { id: 'm1', role: 'assistant', content };
};

/** What of a message can go to Anthropic and come back. */
const expectedOf = ({ content }: AssistantMessage): readonly AssistantBlock[] => {
  const kept = content.flatMap((block): readonly AssistantBlock[] => {
    switch (block.type) {
      case 'text':
        return block.text.trim() === '' ? [] : [block];
      case 'thinking':
        return block.signature === undefined || block.signature.startsWith('{') ? [] : [block];
      case 'tool_call': {
        const { invalidInput: _, ...use } = block;
        return [{ ...use, id: toWireId(block.id) }];
      }
      default:
        return [{ type: 'text', text: `[Your ${block.type}]` }];
    }
  });
  return kept.slice(0, kept.findLastIndex(({ type }) => type !== 'thinking') + 1);
};
