import { wires } from '../scenario.js';
import { json, streamed } from '../steps.js';
import { chatDelta, chatDone } from '../streams/chat-stream.js';
import { messageEnd, messageStart } from '../streams/messages-stream.js';
import { bodyOf, streamOf } from '../streams/wires.js';
import { answering, type Expectation, type Fault, isSunny, sunny } from './fault.js';

const isRight: Expectation = { outcome: isSunny, requests: 1 };

/** Answers that are right, but not where or how they are looked for. */
export const quirkFaults: readonly Fault[] = [
  {
    id: 'other-choices',
    row: 'X5',
    about: 'There is a second choice, which nobody asked for.',
    wires: ['chat'],
    scenario: () => {
      const other = chatDelta({ content: 'No.' }).replace('"index":0', '"index":1');
      const ended = chatDelta({}, 'stop').replace('"index":0', '"index":1');
      const [first = '', ...rest] = streamOf('chat', sunny);
      return { responses: [streamed([first, other, ended, ...rest])] };
    },
    expects: isRight,
  },
  {
    id: 'content-as-parts',
    row: 'X8',
    about: 'The content of deltas is a list of parts, thinking among them.',
    wires: ['chat'],
    scenario: () => ({
      responses: [
        streamed([
          chatDelta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] }),
          chatDelta({ content: [{ type: 'text', text: 'It is ' }] }),
          chatDelta({ content: 'sunny.' }),
          chatDelta({}, 'stop'),
          chatDone,
        ]),
      ],
    }),
    expects: isRight,
  },
  ...['reasoning', 'reasoning_content'].map((field): Fault => ({
    id: `thinking-in-${field.replace('_', '-')}`,
    row: 'X8',
    about: `The model's thinking is in \`${field}\`.`,
    wires: ['chat'],
    scenario: () => ({
      responses: [
        streamed([chatDelta({ [field]: 'Hm.', content: null }), ...streamOf('chat', sunny)]),
      ],
    }),
    expects: isRight,
  })),
  {
    id: 'thinking',
    row: 'X8',
    about: 'The model thinks before it speaks.',
    wires,
    scenario: (wire) => ({ responses: [answering(wire, { ...sunny, thinking: 'Let me see.' })] }),
    expects: isRight,
  },
  {
    id: 'content-in-message-start',
    row: 'X8',
    about: 'All the content is in `message_start`.',
    wires: ['messages'],
    scenario: () => ({
      responses: [
        streamed([
          messageStart(null, undefined, [{ type: 'text', text: 'It is sunny.' }]),
          ...messageEnd('end_turn', null),
        ]),
      ],
    }),
    expects: isRight,
  },
  {
    id: 'empty-answer',
    row: 'X1',
    about: 'A whole answer that says nothing; then one that does.',
    wires,
    scenario: (wire) => ({ responses: [answering(wire, {}), answering(wire, sunny)] }),
    expects: { outcome: isSunny, requests: 2 },
  },
  {
    id: 'empty-json-answer',
    row: 'X1',
    about: 'A whole answer as JSON that says nothing; then one that does.',
    wires,
    scenario: (wire) => ({ responses: [json(200, bodyOf(wire, {})), answering(wire, sunny)] }),
    expects: { outcome: isSunny, requests: 2 },
  },
];
