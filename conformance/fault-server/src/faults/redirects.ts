import { type ResponseScript, type Wire, wires } from '../scenario.js';
import { bytes, json, status } from '../steps.js';
import { sse } from '../streams/sse.js';
import { vendorError } from '../vendor-error.js';
import {
  answering,
  type Expectation,
  fails,
  failsThrice,
  type Fault,
  isSunny,
  sunny,
} from './fault.js';

const redirect = (code: number, location: string): ResponseScript => [
  status(code, { location }),
  bytes('Moved.'),
];

const refused = fails('redirect', 1, false);

/** Where a vendor sends its clients to. A prompt, and its key, go to nobody but whom it was meant for. */
export const redirectFaults: readonly Fault[] = [
  ...[301, 302, 303, 307, 308].map((code): Fault => ({
    id: `redirect-${code}-elsewhere`,
    row: 'X9',
    about: `Status ${code} with the address of another origin.`,
    wires,
    scenario: (wire) => ({ responses: [redirect(code, '{{other}}'), answering(wire, sunny)] }),
    expects: refused,
  })),
  ...[307, 308].map((code): Fault => ({
    id: `redirect-${code}-within`,
    row: 'X9',
    about: `Status ${code} with an address of the same origin.`,
    wires,
    scenario: (wire) => ({
      responses: [redirect(code, '{{self}}?moved'), answering(wire, sunny)],
    }),
    expects: { outcome: isSunny, requests: 2 },
  })),
  {
    id: 'redirect-302-within',
    row: 'X9',
    about:
      'Status 302 with an address of the same origin: a client would ask there without a body.',
    wires,
    scenario: (wire) => ({ responses: [redirect(302, '{{self}}'), answering(wire, sunny)] }),
    expects: refused,
  },
  {
    id: 'redirect-within-then-elsewhere',
    row: 'X9',
    about: 'Status 307 with an address of the same origin, and there one of another origin.',
    wires,
    scenario: (wire) => ({
      responses: [
        redirect(307, '{{self}}?moved'),
        redirect(307, '{{other}}'),
        answering(wire, sunny),
      ],
    }),
    expects: fails('redirect', 2, false),
  },
  {
    id: 'redirect-loop',
    row: 'X9',
    about: 'Status 308 with its own address, over and over: five are followed.',
    wires,
    scenario: () => ({ responses: [redirect(308, '{{self}}')] }),
    expects: fails('redirect', 6, false),
  },
  {
    id: 'redirect-nowhere',
    row: 'X9',
    about: 'Status 307 without an address.',
    wires,
    scenario: () => ({ responses: [[status(307), bytes('Moved.')]] }),
    expects: refused,
  },
];

interface Echo {
  readonly id: string;
  readonly about: string;
  readonly script: (wire: Wire) => ResponseScript;
  readonly expects: Expectation;
}

const echoes: readonly Echo[] = [
  {
    id: 'error-body',
    about: 'the body of an error',
    script: (wire) =>
      json(401, vendorError(wire, 401, { message: 'Incorrect API key provided: {{key}}.' })),
    expects: fails('auth', 1, false),
  },
  {
    id: 'text-body',
    about: 'an error in plain text',
    script: () => [status(500, { 'content-type': 'text/plain' }), bytes('Bearer {{key}} failed')],
    expects: failsThrice('server'),
  },
  {
    id: 'request-id',
    about: 'the id of a request',
    script: (wire) =>
      json(400, vendorError(wire, 400), { 'x-request-id': '{{key}}', 'request-id': '{{key}}' }),
    expects: fails('invalidRequest', 1, false),
  },
  {
    id: 'stream-error',
    about: 'an error within a stream',
    script: (wire) => [
      status(200, { 'content-type': 'text/event-stream' }),
      bytes(sse(vendorError(wire, 500, { message: 'The key {{key}} failed.' }), 'error')),
    ],
    expects: failsThrice('server'),
  },
  {
    id: 'location',
    about: 'the address of a redirect',
    script: () => redirect(307, '{{other}}?key={{key}}'),
    expects: refused,
  },
  {
    id: 'html',
    about: 'an HTML page',
    script: () => [status(200, { 'content-type': 'text/html' }), bytes('<p>{{key}}</p>')],
    expects: fails('invalidResponse', 1, false),
  },
  {
    id: 'content-type',
    about: 'a content type',
    script: () => [status(200, { 'content-type': 'text/html; key={{key}}' }), bytes('<p></p>')],
    expects: fails('invalidResponse', 1, false),
  },
  {
    id: 'malformed',
    about: 'an event that is no JSON',
    script: () => [
      status(200, { 'content-type': 'text/event-stream' }),
      bytes('data: {"key": {{key}}}\n\n'),
    ],
    expects: fails('invalidResponse', 1, false),
  },
];

/** What says the key of the request again. It must be nowhere in what a caller gets to see. */
export const echoFaults: readonly Fault[] = echoes.map(({ id, about, script, expects }): Fault => ({
  id: `echo-${id}`,
  row: 'X10',
  about: `The key stands in ${about}.`,
  wires,
  scenario: (wire) => ({ responses: [script(wire)] }),
  expects,
}));
