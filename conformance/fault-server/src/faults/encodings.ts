import { type ResponseScript, wires } from '../scenario.js';
import { streamed } from '../steps.js';
import type { Answer } from '../streams/answer.js';
import { dataLine } from '../streams/sse.js';
import { streamOf } from '../streams/wires.js';
import { answering, done, type Fault, isDone } from './fault.js';

/** Two, three and four bytes to a character, a pair of surrogates that is cut in two, and line breaks that end no line of a stream. */
const northern: Answer = {
  text: ['Blåbær ', '— 天気 ', '😀', '\ud83c', '\udf26', ' "\\n".', '\u2028data: {}\u2029event: x'],
};
const said = 'Blåbær — 天気 😀🌦 "\\n".\u2028data: {}\u2029event: x';

/** All that JSON escapes. */
const escaped: Answer = {
  toolCalls: [{ arguments: ['{"ci', 'ty":"T\\u00f8n', 'sberg \\"😀', '\\\\"}'] }],
};

interface Encoding {
  readonly id: string;
  readonly about: string;
  readonly encode: (stream: string) => string;
  /** How many bytes come at once. */
  readonly size?: number;
}

const asIs = (stream: string): string => stream;

/** Writes JSON over several lines, as a server may that puts it in for people. */
const overLines = (stream: string): string =>
  stream.replaceAll(dataLine, (_, json: string) =>
    JSON.stringify(JSON.parse(json), null, 1)
      .split('\n')
      .map((line) => `data: ${line}`)
      .join('\n'),
  );

const encodings: readonly Encoding[] = [
  { id: 'lf', about: 'lines end with LF', encode: asIs },
  { id: 'crlf', about: 'lines end with CRLF', encode: (stream) => stream.replaceAll('\n', '\r\n') },
  { id: 'cr', about: 'lines end with CR', encode: (stream) => stream.replaceAll('\n', '\r') },
  { id: 'bom', about: 'a byte order mark comes first', encode: (stream) => `\ufeff${stream}` },
  {
    id: 'comments',
    about: 'comments stand between the events and within them',
    encode: (stream) =>
      `: hello\n\n${stream.replaceAll(/(?<=^|\n)data/gu, ': {"not": data}\ndata')}`,
  },
  { id: 'multi-line', about: 'the data of an event has several lines', encode: overLines },
  {
    id: 'other-fields',
    about: 'events have ids, times to retry and fields that nobody knows',
    encode: (stream) =>
      stream.replaceAll(/(?<=^|\n)data/gu, 'id: 7\nretry: 10\nfield: x\nalone\ndata'),
  },
  {
    id: 'no-space',
    about: 'no space stands behind a colon',
    encode: (stream) => stream.replaceAll(/(?<=^|\n)(data|event): /gu, '$1:'),
  },
  {
    id: 'blank-lines',
    about: 'more empty lines than are needed stand between events',
    encode: (stream) => `\n\n${stream.replaceAll('\n\n', '\n\n\n\n')}`,
  },
  {
    id: 'no-last-line',
    about: 'the last event has no empty line behind it',
    encode: (stream) => stream.trimEnd(),
  },
  { id: 'bytes', about: 'bytes come one by one', encode: asIs, size: 1 },
  { id: 'threes', about: 'bytes come by threes', encode: asIs, size: 3 },
  {
    id: 'crlf-bytes',
    about: 'lines end with CRLF, and bytes come one by one',
    encode: (stream) => stream.replaceAll('\n', '\r\n'),
    size: 1,
  },
];

/** Cuts what the text is said in. What stands before it comes at once, so that nobody waits for it. */
const inPieces = (stream: string, words: string, size: number | undefined): ResponseScript =>
  streamed(
    [stream],
    size === undefined
      ? 'whole'
      : [
          Math.max(1, stream.indexOf(words) - 40),
          ...Array<number>(Math.ceil(2000 / size)).fill(size),
        ],
  );

/** The same stream, written in all the ways that its format allows. https://html.spec.whatwg.org/multipage/server-sent-events.html */
export const encodingFaults: readonly Fault[] = [
  ...encodings.map((encoding): Fault => ({
    id: `encoding-${encoding.id}`,
    row: 'X5',
    about: `A good stream in which ${encoding.about}.`,
    wires,
    scenario: (wire) => ({
      responses: [
        inPieces(encoding.encode(streamOf(wire, northern).join('')), 'Bl', encoding.size),
      ],
    }),
    expects: { outcome: { answer: said }, requests: 1 },
  })),
  {
    id: 'encoding-arguments',
    row: 'X5',
    about: "A tool's arguments, with all that JSON escapes, byte by byte.",
    wires,
    scenario: (wire) => ({
      responses: [inPieces(streamOf(wire, escaped).join(''), '{\\"ci', 1), answering(wire, done)],
    }),
    expects: { outcome: isDone, requests: 2, runs: [{ city: 'Tønsberg "😀\\' }] },
  },
];
