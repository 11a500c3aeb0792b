import { streamed } from '../steps.js';
import { chatChunk, chatDelta, chatDone } from '../streams/chat-stream.js';
import {
  messageEnd,
  messagesBlock,
  messagesEvent,
  messageStart,
} from '../streams/messages-stream.js';
import { responseObject, responsesEvents } from '../streams/responses-stream.js';
import {
  answering,
  done,
  type Expectation,
  failsThrice,
  type Fault,
  isDone,
  isSunny,
} from './fault.js';
import { oslo, rome, runsOslo } from './tool-calls.js';

type Json = Readonly<Record<string, unknown>>;

interface Row {
  readonly id: string;
  readonly about: string;
  readonly events: readonly string[];
  readonly expects: Expectation;
}

const runs: Expectation = { outcome: isDone, requests: 2, runs: runsOslo };
const reads: Expectation = { outcome: isSunny, requests: 1 };

const call = (args: unknown, id = '1'): Json => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: `call_${id}`,
  name: 'weather',
  arguments: args,
});
const added = (item: Json) => ({ type: 'response.output_item.added', output_index: 0, item });
const itemDone = (item: Json) => ({ type: 'response.output_item.done', output_index: 0, item });
const created = (id: string) => ({ type: 'response.created', response: responseObject({ id }) });
const ended = (output: readonly Json[], fields: Json = {}) => ({
  type: 'response.completed',
  response: responseObject({ status: 'completed', output, ...fields }),
});
const said = (content: unknown): Json => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content,
});
const sunny = [{ type: 'output_text', text: 'It is sunny.', annotations: [] }];
const place = { output_index: 0, content_index: 0, item_id: 'msg_1' };

const responses: readonly Row[] = [
  {
    id: 'call-listed-twice',
    about: 'The completed response lists a call twice.',
    events: responsesEvents([added(call('')), ended([call(oslo), call(oslo)])]),
    expects: runs,
  },
  {
    id: 'arguments-as-object',
    about: 'The arguments are an object.',
    events: responsesEvents([added(call('')), ended([call({ city: 'Oslo' })])]),
    expects: runs,
  },
  {
    id: 'delta-as-object',
    about: 'The only delta of the arguments is an object.',
    events: responsesEvents([
      added(call('')),
      {
        type: 'response.function_call_arguments.delta',
        output_index: 0,
        item_id: 'fc_1',
        delta: { city: 'Oslo' },
      },
      ended([]),
    ]),
    expects: runs,
  },
  {
    id: 'other-response',
    about: 'Another response starts in the same stream, after a whole call.',
    events: responsesEvents([
      created('resp_1'),
      itemDone(call(rome, '2')),
      created('resp_2'),
      ended([call(oslo)], { id: 'resp_2' }),
    ]),
    expects: runs,
  },
  {
    id: 'created-twice',
    about: 'The response is created twice.',
    events: responsesEvents([
      created('resp_1'),
      added(call('')),
      created('resp_1'),
      ended([call(oslo)], { id: 'resp_1' }),
    ]),
    expects: runs,
  },
  {
    id: 'refusal-taken-back',
    about: 'A refusal streams, but the completed message is an answer.',
    events: responsesEvents([
      added(said([])),
      { type: 'response.refusal.delta', ...place, delta: 'No' },
      ended([said(sunny)]),
    ]),
    expects: reads,
  },
  {
    id: 'content-as-text',
    about: 'The content of a message is a text.',
    events: responsesEvents([ended([said('It is sunny.')])]),
    expects: reads,
  },
  {
    id: 'text-done-contradicts',
    about: 'The complete text differs from the streamed one, and the end leaves it out.',
    events: responsesEvents([
      added(said([])),
      { type: 'response.output_text.delta', ...place, delta: 'It rains' },
      { type: 'response.output_text.done', ...place, text: 'It is sunny.' },
      ended([]),
    ]),
    expects: reads,
  },
  {
    id: 'part-done-only',
    about: 'The text comes only when its part is complete.',
    events: responsesEvents([
      { type: 'response.content_part.done', ...place, part: { ...sunny[0] } },
      ended([]),
    ]),
    expects: reads,
  },
];

const text = (words: string, index = 0): readonly string[] =>
  messagesBlock(index, { type: 'text', text: '' }, [{ type: 'text_delta', text: words }]);
const use = (city: string, id: string): readonly string[] =>
  messagesBlock(0, { type: 'tool_use', id, name: 'weather', input: { city } }, []);
const start = (id: string): string =>
  messagesEvent({ type: 'message_start', message: { id, type: 'message', content: [] } });

const messages: readonly Row[] = [
  {
    id: 'other-message',
    about: 'Another message starts in the same stream, after a text.',
    events: [
      start('msg_1'),
      ...text('It rains.'),
      start('msg_2'),
      ...text('It is sunny.'),
      ...messageEnd('end_turn', null),
    ],
    expects: reads,
  },
  {
    id: 'other-message-with-call',
    about: 'Another message starts in the same stream, after a call.',
    events: [
      start('msg_1'),
      ...use('Rome', 'toolu_1'),
      start('msg_2'),
      ...use('Oslo', 'toolu_2'),
      ...messageEnd('tool_use', null),
    ],
    expects: runs,
  },
  {
    id: 'delta-without-type',
    about: 'A delta has content, but no type.',
    events: [
      messageStart(null),
      ...messagesBlock(0, { type: 'text', text: '' }, [
        { text: 'It is ' },
        { type: 'text_delta', text: 'sunny.' },
      ]),
      ...messageEnd('end_turn', null),
    ],
    expects: failsThrice('invalidResponse'),
  },
];

const chatCall = (args: unknown): Json => ({
  index: 0,
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: args },
});
const wholeMessage = (message: Json): string =>
  chatChunk({
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  });

const chat: readonly Row[] = [
  {
    id: 'object-repeated',
    about: 'A call whose arguments are an object comes twice.',
    events: [0, 1].map(() => chatDelta({ tool_calls: [chatCall({ city: 'Oslo' })] }, 'tool_calls')),
    expects: runs,
  },
  {
    id: 'call-without-list',
    about: 'A call is not in a list.',
    events: [chatDelta({ tool_calls: chatCall(oslo) }, 'tool_calls')],
    expects: runs,
  },
  {
    id: 'content-in-list',
    about: 'The content is a list of texts.',
    events: [chatDelta({ content: ['It is ', 'sunny.'] }, 'stop')],
    expects: reads,
  },
  {
    id: 'content-as-object',
    about: 'The content is a part that is not in a list.',
    events: [chatDelta({ content: { type: 'text', text: 'It is sunny.' } }, 'stop')],
    expects: reads,
  },
  {
    id: 'whole-message-repeats',
    about: 'The whole message follows its stream.',
    events: [
      chatDelta({ content: 'It is ' }),
      chatDelta({ content: 'sunny.' }),
      wholeMessage({ content: 'It is sunny.' }),
    ],
    expects: reads,
  },
  {
    id: 'whole-message-differs',
    about: 'The whole message differs from its stream.',
    events: [
      chatDelta({ content: 'It rains.', tool_calls: [chatCall(rome)] }),
      wholeMessage({ content: 'It is sunny.' }),
    ],
    expects: reads,
  },
];

/** Answers that say something twice, in another form, or anew. */
export const oddAnswerFaults: readonly Fault[] = (
  [
    ['responses', responses],
    ['messages', messages],
    ['chat', chat.map((row) => ({ ...row, events: [...row.events, chatDone] }))],
  ] as const
).flatMap(([wire, rows]) =>
  rows.map(({ id, about, events, expects }): Fault => {
    const again = expects.requests === 3 ? streamed(events) : answering(wire, done);
    return {
      id: `odd-${wire}-${id}`,
      row: 'X31',
      about,
      wires: [wire],
      scenario: () => ({ responses: [streamed(events), again, again] }),
      expects,
    };
  }),
);
