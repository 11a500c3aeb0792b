import { gzipSync } from 'node:zlib';
import { type Bytes, type ResponseScript, type Wire, wires } from '../scenario.js';
import { bytes, json, stall, status, streamHeaders, wait } from '../steps.js';
import { bodyOf, streamOf } from '../streams/wires.js';
import {
  askOslo,
  done,
  type Expectation,
  answering,
  fails,
  failsThrice,
  type Fault,
  isDone,
  isSunny,
  sunny,
} from './fault.js';

const stream = (wire: Wire): string => streamOf(wire, sunny).join('');

const gzipped = (text: string, level: number, length?: number): Bytes => ({
  base64: gzipSync(text, { level }).subarray(0, length).toString('base64'),
});

const zipHeaders = (type: string) =>
  status(200, { 'content-type': type, 'content-encoding': 'gzip' });

/** Where, in bytes that are packed but not compressed, the first words have been said. */
const firstWords = (wire: Wire): number =>
  gzipSync(stream(wire), { level: 0 }).indexOf('It is ') + 200;

const withType =
  (type: string | undefined) =>
  (wire: Wire): ResponseScript => [
    status(200, type === undefined ? {} : { 'content-type': type }),
    bytes(stream(wire)),
  ];

const page = '<!DOCTYPE html>\n<html><body><h1>Welcome to the proxy</h1></body></html>';

const sentOnce = fails('invalidResponse', 1, false);
const isRight: Expectation = { outcome: isSunny, requests: 1 };

interface Body {
  readonly id: string;
  readonly about: string;
  readonly row?: string;
  readonly script: (wire: Wire) => ResponseScript;
  readonly expects: Expectation;
}

const bodies: readonly Body[] = [
  {
    id: 'html',
    about: 'An HTML page with status 200.',
    script: () => [status(200, { 'content-type': 'text/html' }), bytes(page)],
    expects: sentOnce,
  },
  {
    id: 'html-as-stream',
    about: 'An HTML page that calls itself a stream of events.',
    script: () => [streamHeaders, bytes(`\n  ${page}`)],
    expects: sentOnce,
  },
  {
    id: 'html-endless',
    about: 'An HTML page that goes on.',
    script: () => [status(200, { 'content-type': 'text/html' }), bytes(page), stall()],
    expects: { ...sentOnce, closes: true },
  },
  {
    id: 'json-answer',
    about: 'A whole answer as JSON, though a stream was asked for.',
    script: (wire) => json(200, bodyOf(wire, sunny)),
    expects: isRight,
  },
  {
    id: 'json-answer-as-stream',
    about: 'A whole answer as JSON that calls itself a stream of events.',
    script: (wire) => [streamHeaders, bytes(JSON.stringify(bodyOf(wire, sunny), null, 2))],
    expects: isRight,
  },
  {
    id: 'json-answer-in-pieces',
    about: 'A whole answer as JSON, in pieces.',
    script: (wire) => [
      status(200, { 'content-type': 'application/json' }),
      bytes(JSON.stringify(bodyOf(wire, sunny)), { pieces: 7 }),
    ],
    expects: isRight,
  },
  {
    id: 'json-no-answer',
    about: 'JSON that is no answer.',
    script: () => json(200, { ok: true }),
    expects: sentOnce,
  },
  {
    id: 'json-list',
    about: 'JSON that is a list.',
    script: () => json(200, []),
    expects: sentOnce,
  },
  {
    id: 'json-broken',
    about: 'JSON that ends in the middle.',
    script: (wire) => [
      status(200, { 'content-type': 'application/json' }),
      bytes(JSON.stringify(bodyOf(wire, sunny)).slice(0, 120)),
    ],
    expects: { outcome: { error: 'invalidResponse' }, requests: 1 },
  },
  {
    id: 'json-error',
    about: 'An error body with status 200.',
    script: (wire) => json(200, errorBody(wire)),
    expects: failsThrice('server'),
  },
  {
    id: 'empty',
    about: 'Status 200 with nothing behind it.',
    script: () => [streamHeaders],
    expects: failsThrice('invalidResponse'),
  },
  {
    id: 'blank',
    about: 'Status 200 with white space behind it.',
    script: () => [streamHeaders, bytes('\n\n \n')],
    expects: failsThrice('invalidResponse'),
  },
  {
    id: 'no-content',
    about: 'Status 204.',
    script: () => [status(204)],
    expects: failsThrice('invalidResponse'),
  },
  {
    id: 'plain-text',
    about: 'Plain text with status 200.',
    script: () => [status(200, { 'content-type': 'text/plain' }), bytes('upstream timed out\n')],
    expects: failsThrice('invalidResponse'),
  },
  {
    id: 'gzip-json',
    about: 'A whole answer as JSON, compressed.',
    script: (wire) => [
      zipHeaders('application/json'),
      bytes(gzipped(JSON.stringify(bodyOf(wire, sunny)), 9)),
    ],
    expects: isRight,
  },
  {
    id: 'gzip-stream',
    about: 'A stream of events, compressed.',
    script: (wire) => [
      zipHeaders('text/event-stream'),
      bytes(gzipped(stream(wire), 9), { pieces: 50 }),
    ],
    expects: isRight,
  },
  {
    id: 'gzip-truncated',
    about: 'A compressed stream that ends in the middle of the text.',
    script: (wire) => [
      zipHeaders('text/event-stream'),
      bytes(gzipped(stream(wire), 0, firstWords(wire))),
    ],
    expects: { outcome: { error: 'invalidResponse' }, requests: 1 },
  },
  {
    id: 'gzip-corrupt',
    about: 'A compressed stream that is broken behind its first words.',
    script: (wire) => [
      zipHeaders('text/event-stream'),
      bytes(gzipped(stream(wire), 0, firstWords(wire))),
      wait(30),
      bytes('these bytes are not compressed'),
    ],
    // The `fetch` of Node 20 falls silent at such bytes, where that of later ones errors.
    expects: { outcome: { error: ['invalidResponse', 'timeout'] }, requests: 1 },
  },
  ...['application/json', 'text/plain', 'text/html', undefined].map((type): Body => ({
    id: `stream-as-${type?.replace('/', '-') ?? 'nothing'}`,
    about: `A good stream whose content type is ${type ?? 'absent'}.`,
    script: withType(type),
    expects: isRight,
  })),
];

const errorBody = (wire: Wire): unknown =>
  wire === 'messages'
    ? { type: 'error', error: { type: 'api_error', message: 'Internal server error' } }
    : { error: { message: 'The server had an error', type: 'server_error', code: null } };

/** Bodies of a response with status 200 that are not what was asked for, or do not look like it. */
export const bodyFaults: readonly Fault[] = [
  ...bodies.map(({ id, about, row = 'X1', script, expects }): Fault => ({
    id: `body-${id}`,
    row,
    about,
    wires,
    scenario: (wire) => ({ responses: [script(wire)] }),
    expects,
  })),
  {
    id: 'body-json-answer-with-tools',
    row: 'X1',
    about: 'A whole answer as JSON that asks for a tool.',
    wires,
    scenario: (wire) => ({
      responses: [json(200, bodyOf(wire, askOslo)), answering(wire, done)],
    }),
    expects: { outcome: isDone, requests: 2, runs: [{ city: 'Oslo' }] },
  },
];
