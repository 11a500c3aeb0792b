import { type Wire, wires } from '../scenario.js';
import { json, status, bytes } from '../steps.js';
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

const expectations: readonly (readonly [number, Expectation])[] = [
  [400, fails('invalidRequest', 1, false)],
  [401, fails('auth', 1, false)],
  [402, fails('rateLimited', 1, false)],
  [403, fails('auth', 1, false)],
  [404, fails('invalidRequest', 1, false)],
  [408, failsThrice('timeout')],
  [409, failsThrice('conflict')],
  [413, fails('tooLarge', 1, false)],
  [422, fails('invalidRequest', 1, false)],
  [429, failsThrice('rateLimited')],
  [500, failsThrice('server')],
  [502, failsThrice('server')],
  [503, failsThrice('server')],
  [504, failsThrice('server')],
  [529, failsThrice('server')],
];

const byStatus = expectations.map(([code, expects]): Fault => ({
  id: `status-${code}`,
  row: 'X4',
  about: `Status ${code} with the vendor's error body, each time.`,
  wires,
  scenario: (wire) => ({ responses: [json(code, vendorError(wire, code))] }),
  expects,
}));

/** The words in which vendors say that the prompt is too long; OpenAI has a code for it. */
const overflow = (wire: Wire) =>
  wire === 'messages'
    ? { message: 'prompt is too long: 250000 tokens > 200000 maximum' }
    : {
        message: "This model's maximum context length is 128000 tokens.",
        code: 'context_length_exceeded',
      };

/** Statuses of a response without a good answer, and what is said of them. */
export const statusFaults: readonly Fault[] = [
  ...byStatus,
  {
    id: 'status-502-html',
    row: 'X4',
    about: 'Status 502 with the HTML page of a proxy.',
    wires,
    scenario: () => ({
      responses: [[status(502, { 'content-type': 'text/html' }), bytes('<h1>Bad Gateway</h1>')]],
    }),
    expects: failsThrice('server'),
  },
  {
    id: 'status-500-empty',
    row: 'X4',
    about: 'Status 500 with nothing behind it.',
    wires,
    scenario: () => ({ responses: [[status(500)]] }),
    expects: failsThrice('server'),
  },
  {
    id: 'context-too-long',
    row: 'X4',
    about: 'Status 400, because the prompt is too long.',
    wires,
    scenario: (wire) => ({ responses: [json(400, vendorError(wire, 400, overflow(wire)))] }),
    expects: fails('contextTooLong', 1, false),
  },
  {
    id: 'content-policy',
    row: 'X4',
    about: 'Status 400, because the prompt breaks a policy.',
    wires: ['chat', 'responses'],
    scenario: (wire) => ({
      responses: [json(400, vendorError(wire, 400, { code: 'content_policy_violation' }))],
    }),
    expects: fails('refused', 1, false),
  },
  {
    id: 'insufficient-quota',
    row: 'X4',
    about: 'Status 429, because the account has no money left: waiting does not help.',
    wires: ['chat', 'responses'],
    scenario: (wire) => ({
      responses: [
        json(
          429,
          vendorError(wire, 429, { type: 'insufficient_quota', code: 'insufficient_quota' }),
        ),
      ],
    }),
    expects: fails('rateLimited', 1, false),
  },
  {
    id: 'should-retry-true',
    row: 'X4',
    about: 'Status 400 with `x-should-retry: true`, then success.',
    wires,
    scenario: (wire) => ({
      responses: [
        json(400, vendorError(wire, 400), { 'x-should-retry': 'true' }),
        answering(wire, sunny),
      ],
    }),
    expects: { outcome: isSunny, requests: 2 },
  },
  {
    id: 'should-retry-false',
    row: 'X4',
    about: 'Status 500 with `x-should-retry: false`.',
    wires,
    scenario: (wire) => ({
      responses: [json(500, vendorError(wire, 500), { 'x-should-retry': 'false' })],
    }),
    expects: fails('server', 1, false),
  },
  {
    id: 'server-error-then-success',
    row: 'X4',
    about: 'Status 500 twice, then success.',
    wires,
    scenario: (wire) => {
      const failure = json(500, vendorError(wire, 500));
      return { responses: [failure, failure, answering(wire, sunny)] };
    },
    expects: { outcome: isSunny, requests: 3 },
  },
];
