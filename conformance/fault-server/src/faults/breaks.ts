import { type ResponseScript, type Step, type Wire, wires } from '../scenario.js';
import { bytes, hangUp, reset, stall, streamHeaders, wait } from '../steps.js';
import { ping, messagesBlock, messagesEvent } from '../streams/messages-stream.js';
import { chatDelta } from '../streams/chat-stream.js';
import { sse } from '../streams/sse.js';
import { streamOf } from '../streams/wires.js';
import { askOslo, type Expectation, fails, failsThrice, type Fault, sunny, upTo } from './fault.js';

/** A place in an answer, and what has been said until there. */
interface Place {
  readonly id: string;
  readonly about: string;
  /** Whether content has come: from then on, nothing is sent again. */
  readonly isContent: boolean;
  readonly isToolCall?: true;
  readonly script: (wire: Wire) => ResponseScript;
}

/** The events before any content: the role, or the start. */
const opening = (wire: Wire): readonly string[] =>
  streamOf(wire, sunny).slice(0, wire === 'chat' ? 1 : 2);

const places: readonly Place[] = [
  { id: 'before-headers', about: 'before the headers', isContent: false, script: () => [] },
  {
    id: 'after-headers',
    about: 'behind the headers',
    isContent: false,
    script: () => [streamHeaders],
  },
  {
    id: 'before-content',
    about: 'behind the first events, that say nothing yet',
    isContent: false,
    script: (wire) => [streamHeaders, bytes(opening(wire).join(''))],
  },
  {
    id: 'mid-text',
    about: 'in the middle of the text',
    isContent: true,
    script: (wire) => [streamHeaders, bytes(upTo(streamOf(wire, sunny), 'It is ').join(''))],
  },
  {
    id: 'mid-arguments',
    about: "in the middle of a tool's arguments",
    isContent: true,
    isToolCall: true,
    script: (wire) => [streamHeaders, bytes(upTo(streamOf(wire, askOslo), '{\\"city').join(''))],
  },
];

/** An end that comes at a place. */
interface Break {
  readonly id: string;
  readonly about: string;
  readonly error: string;
  readonly closes?: true;
  readonly steps: readonly Step[];
}

const breaks: readonly Break[] = [
  {
    id: 'reset',
    about: 'The connection is reset',
    error: 'connection',
    // What was sent must be read before the reset throws it away.
    steps: [wait(30), reset],
  },
  {
    id: 'hang-up',
    about: 'The connection is closed without an end',
    error: 'connection',
    steps: [wait(30), hangUp],
  },
  {
    id: 'end',
    about: 'The response ends in good order',
    error: 'invalidResponse',
    steps: [],
  },
  {
    id: 'stall',
    about: 'Nothing more is said',
    error: 'timeout',
    closes: true,
    steps: [stall()],
  },
];

const expected = (
  { isContent, isToolCall }: Place,
  error: string,
  closes: true | undefined,
): Expectation => ({
  // A silent model is asked once more only.
  ...(isContent
    ? fails(error, 1)
    : error === 'timeout'
      ? fails(error, 2, true)
      : failsThrice(error)),
  ...(closes === undefined ? {} : { closes }),
  ...(isToolCall === undefined ? {} : { runs: [] }),
});

const brokenOff = breaks.flatMap(({ id, about, error, closes, steps }) =>
  // A response that ends before its headers is an empty one: see `bodies.ts`.
  places.slice(id === 'end' ? 1 : 0).map((place): Fault => ({
    id: `${id}-${place.id}`,
    row: id === 'stall' ? 'X3' : 'X1',
    about: `${about} ${place.about}.`,
    wires,
    scenario: (wire) => ({ responses: [[...place.script(wire), ...steps]] }),
    expects: expected(place, error, closes),
  })),
);

/** Signs of life that say nothing. */
interface Life {
  readonly id: string;
  readonly about: string;
  readonly wires: readonly Wire[];
  readonly heartbeat: (wire: Wire) => string;
}

const emptyDeltas: Readonly<Record<Wire, string>> = {
  chat: chatDelta({ content: '' }),
  responses: sse(
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: '' },
    'response.output_text.delta',
  ),
  messages: messagesEvent({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: '' },
  }),
};

const lives: readonly Life[] = [
  { id: 'comments', about: 'comments', wires, heartbeat: () => ': keep-alive\n\n' },
  { id: 'pings', about: 'pings', wires: ['messages'], heartbeat: () => ping },
  { id: 'empty-deltas', about: 'empty deltas', wires, heartbeat: (wire) => emptyDeltas[wire] },
];

/** An empty delta of Anthropic's belongs to a block that has been opened. */
const open = (wire: Wire, place: Place): readonly Step[] => {
  const script = place.script(wire);
  const [start = ''] = messagesBlock(0, { type: 'text', text: '', citations: null }, []);
  return wire === 'messages' && !place.isContent ? [...script, bytes(start)] : script;
};

const keptAlive = lives.flatMap(({ id, about, wires: on, heartbeat }) =>
  places
    .filter((place) => place.id === 'before-content' || place.id === 'mid-text')
    .map((place): Fault => ({
      id: `stall-${place.id}-with-${id}`,
      row: 'X3',
      about: `Nothing more is said ${place.about}, but for ${about}.`,
      wires: on,
      scenario: (wire) => ({
        responses: [[...open(wire, place), stall({ bytes: heartbeat(wire), everyMs: 20 })]],
      }),
      expects: expected(place, 'timeout', true),
    })),
);

/** Connections that break off or fall silent, at every place of an answer. */
export const breakFaults: readonly Fault[] = [...brokenOff, ...keptAlive];
