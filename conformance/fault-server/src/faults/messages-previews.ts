import { streamed } from '../steps.js';
import {
  messageEnd,
  messagesBlock,
  messagesEvent,
  messageStart,
} from '../streams/messages-stream.js';
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

const weather = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} };
const call = (input: Json, ...pieces: readonly string[]): readonly string[] =>
  messagesBlock(
    0,
    { ...weather, input },
    pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  );
const text = messagesBlock(0, { type: 'text', text: '' }, [
  { type: 'text_delta', text: 'It is ' },
  { type: 'text_delta', text: 'sunny.' },
]);
const pieces = [oslo.slice(0, 6), oslo.slice(6)];
const start = messageStart(null);
const [messageDelta = '', messageStop = ''] = messageEnd('tool_use', null);
const asks = (events: readonly string[]): readonly string[] => [
  start,
  ...events,
  messageDelta,
  messageStop,
];
const says = (events: readonly string[]): readonly string[] => [
  ...events,
  ...messageEnd('end_turn', null),
];
const without = (events: readonly string[], type: string): readonly string[] =>
  events.filter((event) => !event.includes(`"type":"${type}"`));
const twice = (events: readonly string[], type: string): readonly string[] =>
  events.flatMap((event) => (event.includes(`"type":"${type}"`) ? [event, event] : [event]));

const ofTomorrow = messagesBlock(1, { type: 'tomorrow', id: 'new_1', notes: '' }, [
  { type: 'tomorrow_delta', notes: 'n' },
]);

const runs: Expectation = { outcome: isDone, requests: 2, runs: runsOslo };
const reads: Expectation = { outcome: isSunny, requests: 1 };

interface Preview {
  readonly id: string;
  readonly row: string;
  readonly about: string;
  readonly events: readonly string[];
  readonly expects: Expectation;
}

const previews: readonly Preview[] = [
  {
    id: 'no-block-stop',
    row: 'X31',
    about: 'No block of the message stops.',
    events: asks(without(call({}, ...pieces), 'content_block_stop')),
    expects: runs,
  },
  {
    id: 'no-message-stop',
    row: 'X31',
    about: 'The message does not stop after its stop reason.',
    events: asks(call({}, ...pieces)).slice(0, -1),
    expects: runs,
  },
  {
    id: 'no-start',
    row: 'X31',
    about: 'Neither the message nor its text starts.',
    events: says(without(text, 'content_block_start')),
    expects: reads,
  },
  {
    id: 'start-twice',
    row: 'X31',
    about: 'The message and its call start twice.',
    events: [start, ...asks(twice(call({}, ...pieces), 'content_block_start'))],
    expects: runs,
  },
  {
    id: 'stop-twice',
    row: 'X31',
    about: 'The text and the message stop twice.',
    events: [start, ...says(twice(text, 'content_block_stop')), messageStop],
    expects: reads,
  },
  {
    id: 'start-contradicts',
    row: 'X31',
    about: 'The arguments at the start of a call differ from the streamed ones.',
    events: asks(call({ city: 'Rome' }, ...pieces)),
    expects: runs,
  },
  {
    id: 'finish-within-call',
    row: 'X5',
    about: 'The stop reason comes before the call.',
    events: [start, messageDelta, ...call({}, ...pieces), messageStop],
    expects: runs,
  },
  {
    id: 'arguments-without-start',
    row: 'X31',
    about: 'The start of a call is missing.',
    events: asks(without(call({}, rome), 'content_block_start')),
    expects: { ...failsThrice('invalidResponse'), runs: [] },
  },
  {
    id: 'only-unknown-block',
    row: 'X30',
    about: 'The only block of the answer is of an unknown type.',
    events: [start, ...says(ofTomorrow)],
    expects: { outcome: { answer: '' }, requests: 1 },
  },
  {
    id: 'unknown-block-and-call',
    row: 'X30',
    about: 'A block of an unknown type is beside a call.',
    events: asks([...call({}, ...pieces), ...ofTomorrow]),
    expects: runs,
  },
  {
    id: 'unknown-delta',
    row: 'X30',
    about: 'A text has a delta of an unknown type.',
    events: [
      start,
      ...says([
        ...text.slice(0, -1),
        messagesEvent({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'tomorrow_delta', notes: 'n' },
        }),
        ...text.slice(-1),
      ]),
    ],
    expects: reads,
  },
];

/** Messages that say something twice, or not at all, or that nobody knows yet. */
export const messagePreviewFaults: readonly Fault[] = previews.map(
  ({ id, row, about, events, expects }): Fault => ({
    id: `preview-messages-${id}`,
    row,
    about,
    wires: ['messages'],
    scenario: () => ({ responses: [streamed(events), ...again(events, expects)] }),
    expects,
  }),
);

/** The server answers the results of tools, and gives each retry the same answer. */
const again = (events: readonly string[], { runs: expectedRuns, requests }: Expectation) =>
  requests === 3
    ? [streamed(events), streamed(events)]
    : expectedRuns === undefined
      ? []
      : [answering('messages', done)];
