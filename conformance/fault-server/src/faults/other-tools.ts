import type { ResponseScript, Wire } from '../scenario.js';
import { streamed } from '../steps.js';
import {
  messageEnd,
  messagesBlock,
  messagesEvent,
  messagesStream,
  messagesUsage,
  messageStart,
} from '../streams/messages-stream.js';
import type { ItemEvent } from '../streams/responses-items.js';
import { responseObject, responsesEvents } from '../streams/responses-stream.js';
import { answering, askOslo, done, type Fault, isDone } from './fault.js';
import { type Oddity, oslo, rome, runsBoth, runsOslo } from './tool-calls.js';

type Json = Readonly<Record<string, unknown>>;

const usage = messagesUsage({ input: 21, cached: 0, output: 7 });

/** A message with these events between its start and its end. */
const message = (...events: readonly string[]): ResponseScript =>
  streamed([messageStart(usage), ...events, ...messageEnd('tool_use', usage)]);

const toolCall = (fields: Json): Json => ({
  type: 'tool_use',
  name: 'weather',
  input: {},
  ...fields,
});
const json = (partial_json: string): Json => ({ type: 'input_json_delta', partial_json });

const start = (index: number, id: string): string =>
  messagesEvent({ type: 'content_block_start', index, content_block: toolCall({ id }) });
const delta = (index: number, text: string): string =>
  messagesEvent({ type: 'content_block_delta', index, delta: json(text) });
const stop = (index: number): string => messagesEvent({ type: 'content_block_stop', index });

const messagesOddities: readonly Oddity[] = [
  {
    id: 'id-missing',
    about: 'Tool uses have no id.',
    script: message(
      ...messagesBlock(0, toolCall({}), [json(oslo)]),
      ...messagesBlock(1, toolCall({ id: '' }), [json(rome)]),
    ),
    runs: runsBoth,
  },
  {
    id: 'index-gaps',
    about: 'Indexes have gaps, and one is 1,000,000,000.',
    script: message(
      ...messagesBlock(3, toolCall({ id: 'toolu_1' }), [json('{"city":'), json('"Oslo"}')]),
      ...messagesBlock(1e9, toolCall({ id: 'toolu_2' }), [json(rome)]),
    ),
    runs: runsBoth,
  },
  {
    id: 'input-at-once',
    about: 'The whole input is in the start of the block, and no delta follows.',
    script: message(
      ...messagesBlock(0, toolCall({ id: 'toolu_1', input: { city: 'Oslo' } }), []),
      ...messagesBlock(1, toolCall({ id: 'toolu_2', input: { city: 'Rome' } }), [json('')]),
    ),
    runs: runsBoth,
  },
  {
    id: 'interleaved',
    about: 'The deltas of two blocks alternate.',
    script: message(
      ...[start(0, 'toolu_1'), start(1, 'toolu_2'), delta(0, '{"city":'), delta(1, '{"city":')],
      ...[delta(0, '"Oslo"}'), delta(1, '"Rome"}'), stop(0), stop(1)],
    ),
    runs: runsBoth,
  },
  {
    id: 'in-message-start',
    about: 'The first tool use is in `message_start`, the second one streams.',
    script: streamed([
      messageStart(usage, undefined, [toolCall({ id: 'toolu_1', input: { city: 'Oslo' } })]),
      ...messagesBlock(1, toolCall({ id: 'toolu_2' }), [json(rome)]),
      ...messageEnd('tool_use', usage),
    ]),
    runs: runsBoth,
  },
  {
    id: 'no-block-stop',
    about: 'The blocks are not closed before the message is.',
    script: streamed(
      messagesStream(askOslo).filter((event) => !event.includes('content_block_stop')),
    ),
    runs: runsOslo,
  },
];

/** A response with these events between its start and its end. */
const response = (...events: readonly ItemEvent[]): ResponseScript =>
  streamed(
    responsesEvents([
      { type: 'response.created', response: responseObject() },
      ...events,
      { type: 'response.completed', response: responseObject({ status: 'completed' }) },
    ]),
  );

const call = (id: string, args: string, fields: Json = {}): Json => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: `call_${id}`,
  name: 'weather',
  arguments: args,
  status: 'completed',
  ...fields,
});

const added = (output_index: number | undefined, item: Json): ItemEvent => ({
  type: 'response.output_item.added',
  ...place(output_index),
  item: { ...item, arguments: '', status: 'in_progress' },
});

const argued = (output_index: number | undefined, id: string, text: string): ItemEvent => ({
  type: 'response.function_call_arguments.delta',
  item_id: `fc_${id}`,
  ...place(output_index),
  delta: text,
});

const ended = (output_index: number | undefined, item: Json): ItemEvent => ({
  type: 'response.output_item.done',
  ...place(output_index),
  item,
});

const place = (output_index: number | undefined): Json =>
  output_index === undefined ? {} : { output_index };

const whole = (output_index: number | undefined, id: string, args: string, fields: Json = {}) => [
  added(output_index, call(id, args, fields)),
  argued(output_index, id, args.slice(0, 8)),
  argued(output_index, id, args.slice(8)),
  ended(output_index, call(id, args, fields)),
];

const responsesOddities: readonly Oddity[] = [
  {
    id: 'id-missing',
    about: 'Calls have no call id.',
    script: response(
      ...whole(0, '1', oslo, { call_id: undefined }),
      ...whole(1, '2', rome, { call_id: '' }),
    ),
    runs: runsBoth,
  },
  {
    id: 'index-gaps',
    about: 'Indexes have gaps, and one is 1,000,000,000.',
    script: response(...whole(3, '1', oslo), ...whole(1e9, '2', rome)),
    runs: runsBoth,
  },
  {
    id: 'index-missing',
    about: 'Events have no index.',
    script: response(...whole(undefined, '1', oslo), ...whole(undefined, '2', rome)),
    runs: runsBoth,
  },
  {
    id: 'interleaved',
    about: 'The deltas of two calls alternate.',
    script: response(
      ...[added(0, call('1', oslo)), added(1, call('2', rome))],
      ...[argued(0, '1', '{"city":'), argued(1, '2', '{"city":')],
      ...[argued(0, '1', '"Oslo"}'), argued(1, '2', '"Rome"}')],
      ...[ended(0, call('1', oslo)), ended(1, call('2', rome))],
    ),
    runs: runsBoth,
  },
  {
    id: 'no-deltas',
    about: 'The arguments have no deltas: they are whole when they are done.',
    script: response(
      added(0, call('1', oslo)),
      {
        type: 'response.function_call_arguments.done',
        item_id: 'fc_1',
        output_index: 0,
        arguments: oslo,
      },
      ended(0, call('1', oslo)),
    ),
    runs: runsOslo,
  },
  {
    id: 'only-done',
    about: 'A call is told only when it is done.',
    script: response(ended(0, call('1', oslo)), ended(1, call('2', rome))),
    runs: runsBoth,
  },
];

const faultsOf = (wire: Wire, oddities: readonly Oddity[]): readonly Fault[] =>
  oddities.map(({ id, about, row = 'X7', script, runs }) => ({
    id: `${wire}-tool-${id}`,
    row,
    about,
    wires: [wire],
    scenario: () => ({ responses: [script, answering(wire, done)] }),
    expects: { outcome: isDone, requests: 2, runs },
  }));

/** Tool uses that only Anthropic's messages and OpenAI's Responses can say so oddly. */
export const otherToolFaults: readonly Fault[] = [
  ...faultsOf('messages', messagesOddities),
  ...faultsOf('responses', responsesOddities),
];
