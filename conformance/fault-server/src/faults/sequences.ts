import { type Wire, wires } from '../scenario.js';
import { bytes, reset, stall, streamed, streamHeaders, wait } from '../steps.js';
import { streamOf } from '../streams/wires.js';
import { chatChunk, chatDelta } from '../streams/chat-stream.js';
import { messagesBlock, messagesEvent } from '../streams/messages-stream.js';
import { sse } from '../streams/sse.js';
import { answering, type Expectation, type Fault, isSunny, sunny } from './fault.js';

const isRight: Expectation = { outcome: isSunny, requests: 1 };

/** Events that no client has heard of. */
const unknown: Readonly<Record<Wire, readonly string[]>> = {
  chat: [
    sse({ object: 'chat.completion.future', id: 'x', payload: { choices: [{}] } }),
    chatChunk({ choices: [] }),
    chatChunk({}),
    chatDelta({ hologram: { text: 'No.' }, content: null }),
    sse({ type: 'future' }, 'future'),
  ],
  responses: [
    sse(
      { type: 'response.hologram.delta', delta: 'No.', output_index: 0 },
      'response.hologram.delta',
    ),
    sse(
      {
        type: 'response.output_item.added',
        output_index: 9,
        item: { type: 'hologram_call', id: 'ho_1' },
      },
      'response.output_item.added',
    ),
    sse({ type: 'keepalive' }, 'keepalive'),
  ],
  messages: [
    messagesEvent({ type: 'hologram', index: 0, delta: { type: 'text_delta', text: 'No.' } }),
    ...messagesBlock(9, { type: 'hologram', data: 'No.' }, [
      { type: 'hologram_delta', text: 'No.' },
    ]),
    messagesEvent({
      type: 'content_block_delta',
      index: 9,
      delta: { type: 'citations_delta', citation: {} },
    }),
  ],
};

/** Text that comes when the answer is over. */
const late: Readonly<Record<Wire, readonly string[]>> = {
  chat: [
    chatDelta({ content: ' No.' }),
    chatDelta({
      tool_calls: [
        { index: 0, id: 'x', function: { name: 'weather', arguments: '{"city":"Late"}' } },
      ],
    }),
  ],
  responses: [
    sse(
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: ' No.' },
      'response.output_text.delta',
    ),
  ],
  messages: messagesBlock(7, { type: 'text', text: '' }, [{ type: 'text_delta', text: ' No.' }]),
};

/** Repeats those events that a vendor may say twice without saying anything else. */
const repeat = (wire: Wire, events: readonly string[]): readonly string[] => {
  switch (wire) {
    case 'responses':
      return events.flatMap((event) => [event, event]);
    case 'messages':
      return events.flatMap((event) =>
        /event: (ping|message_delta|message_stop|content_block_stop)/.test(event)
          ? [event, event]
          : [event],
      );
    case 'chat':
      return [...events.slice(0, 1), ...events.slice(0, -1), ...events.slice(-3)];
  }
};

/** Where an answer is whole although the stream is not. */
const withoutLast = (wire: Wire): readonly string[] =>
  streamOf(wire, sunny).slice(0, wire === 'responses' ? undefined : -1);

/** Events that come twice, too late, never, or for somebody else. */
export const sequenceFaults: readonly Fault[] = [
  {
    id: 'events-unknown',
    row: 'X5',
    about: 'Events, blocks and fields that nobody knows stand among the others.',
    wires,
    scenario: (wire) => {
      const [first = '', ...rest] = streamOf(wire, sunny);
      return { responses: [streamed([first, ...unknown[wire], ...rest])] };
    },
    expects: isRight,
  },
  {
    id: 'events-twice',
    row: 'X5',
    about:
      'Events come twice: the start, the end, the usage; on the Responses wire, which numbers them, all.',
    wires,
    scenario: (wire) => ({ responses: [streamed(repeat(wire, streamOf(wire, sunny)))] }),
    expects: isRight,
  },
  {
    id: 'events-late',
    row: 'X5',
    about: 'Content comes after the end of the stream.',
    wires,
    scenario: (wire) => ({ responses: [streamed([...streamOf(wire, sunny), ...late[wire]])] }),
    expects: isRight,
  },
  {
    id: 'last-event-missing',
    row: 'X1',
    about: 'The finish has been said, but what should follow it has not: the stream ends.',
    wires: ['chat', 'messages'],
    scenario: (wire) => ({ responses: [streamed(withoutLast(wire))] }),
    expects: isRight,
  },
  {
    id: 'reset-after-finish',
    row: 'X1',
    about: 'The connection is reset when the finish has been said.',
    wires,
    scenario: (wire) => ({
      responses: [[streamHeaders, bytes(withoutLast(wire).join('')), wait(30), reset]],
    }),
    expects: isRight,
  },
  {
    id: 'stall-after-finish',
    row: 'X3',
    about: 'The finish has been said, but neither the last event nor the end comes.',
    wires,
    scenario: (wire) => ({
      responses: [[streamHeaders, bytes(withoutLast(wire).join('')), stall()]],
    }),
    expects: { ...isRight, closes: true },
  },
  {
    id: 'stall-after-last-event',
    row: 'X3',
    about: 'All has been said, but the response does not end.',
    wires,
    scenario: (wire) => ({ responses: [[...answering(wire, sunny), stall()]] }),
    expects: { ...isRight, closes: true },
  },
  {
    id: 'finish-missing',
    row: 'X1',
    about: 'The stream says that it is over, but not why.',
    wires: ['chat', 'messages'],
    scenario: (wire) => {
      const ends = wire === 'chat' ? /"finish_reason":"stop"/ : /event: message_delta/;
      return { responses: [streamed(streamOf(wire, sunny).filter((event) => !ends.test(event)))] };
    },
    expects: { outcome: { error: 'invalidResponse' }, requests: 1 },
  },
];
