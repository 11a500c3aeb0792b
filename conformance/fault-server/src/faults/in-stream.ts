import { type ResponseScript, type Wire, wires } from '../scenario.js';
import { bytes, stall, streamed, streamHeaders } from '../steps.js';
import { chatDelta } from '../streams/chat-stream.js';
import { messagesEvent } from '../streams/messages-stream.js';
import { responseObject } from '../streams/responses-stream.js';
import { sse } from '../streams/sse.js';
import { streamOf } from '../streams/wires.js';
import {
  answering,
  askOslo,
  fails,
  failsThrice,
  type Fault,
  isSunny,
  sunny,
  upTo,
} from './fault.js';

/** An error as an event. Its kind is Anthropic's type; the others say it in their own way. */
const errorEvent = (
  wire: Wire,
  kind: 'api_error' | 'overloaded_error' | 'rate_limit_error',
): string => {
  const message = `Simulated ${kind}.`;
  switch (wire) {
    case 'messages':
      return messagesEvent({ type: 'error', error: { type: kind, message } });
    case 'responses':
      return sse(
        { type: 'error', code: openaiCodes[kind], message, param: null, sequence_number: 9 },
        'error',
      );
    case 'chat':
      return sse({ error: { message, type: openaiCodes[kind], param: null, code: null } });
  }
};

const openaiCodes = {
  api_error: 'server_error',
  overloaded_error: 'overloaded_error',
  rate_limit_error: 'rate_limit_exceeded',
};

const begin = (wire: Wire): readonly string[] =>
  streamOf(wire, sunny).slice(0, wire === 'chat' ? 1 : 2);

const withError = (wire: Wire, kind: Parameters<typeof errorEvent>[1]): ResponseScript =>
  streamed([...begin(wire), errorEvent(wire, kind)]);

/** A response that fails says so in its last event. */
const failedResponse = (code: string): ResponseScript => {
  const response = responseObject({
    status: 'failed',
    error: { code, message: `Simulated ${code}.` },
  });
  const event = sse({ type: 'response.failed', response, sequence_number: 2 }, 'response.failed');
  return streamed([...begin('responses'), event]);
};

/** Errors that come within a response with status 200. */
export const inStreamFaults: readonly Fault[] = [
  {
    id: 'stream-error-first',
    row: 'X4',
    about: 'An error is the first that the stream says.',
    wires,
    scenario: (wire) => ({ responses: [streamed([errorEvent(wire, 'api_error')])] }),
    expects: failsThrice('server'),
  },
  {
    id: 'stream-error-before-content',
    row: 'X4',
    about: 'An error comes before any content.',
    wires,
    scenario: (wire) => ({ responses: [withError(wire, 'api_error')] }),
    expects: failsThrice('server'),
  },
  {
    id: 'stream-overloaded-then-success',
    row: 'X4',
    about: 'The stream says that the vendor is overloaded; then success.',
    wires,
    scenario: (wire) => ({
      responses: [withError(wire, 'overloaded_error'), answering(wire, sunny)],
    }),
    expects: { outcome: isSunny, requests: 2 },
  },
  {
    id: 'stream-rate-limited',
    row: 'X4',
    about: 'The stream says that there were too many requests.',
    wires,
    scenario: (wire) => ({ responses: [withError(wire, 'rate_limit_error')] }),
    expects: failsThrice('rateLimited'),
  },
  {
    id: 'stream-error-after-text',
    row: 'X1',
    about: 'An error comes behind some text, and then nothing more.',
    wires,
    scenario: (wire) => ({
      responses: [
        [
          streamHeaders,
          bytes(upTo(streamOf(wire, sunny), 'It is ').join('') + errorEvent(wire, 'api_error')),
          stall(),
        ],
      ],
    }),
    expects: { ...fails('server', 1), closes: true },
  },
  {
    id: 'stream-error-numeric',
    row: 'X4',
    about: 'The stream says that the vendor behind a router failed: the code is a number.',
    wires: ['chat'],
    scenario: () => ({
      responses: [
        streamed([
          sse({
            error: { code: 502, message: 'Provider returned error' },
            choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
          }),
        ]),
      ],
    }),
    expects: failsThrice('server'),
  },
  {
    id: 'response-failed',
    row: 'X4',
    about: 'The response ends with `response.failed`: an error of the server.',
    wires: ['responses'],
    scenario: () => ({ responses: [failedResponse('server_error')] }),
    expects: failsThrice('server'),
  },
  {
    id: 'response-failed-then-success',
    row: 'X4',
    about: 'The response ends with `response.failed`: too many requests; then success.',
    wires: ['responses'],
    scenario: () => ({
      responses: [failedResponse('rate_limit_exceeded'), answering('responses', sunny)],
    }),
    expects: { outcome: isSunny, requests: 2 },
  },
  {
    id: 'event-malformed',
    row: 'X1',
    about: 'An event is no JSON, and nothing follows.',
    wires,
    scenario: (wire) => ({
      responses: [
        [streamHeaders, bytes(`${begin(wire).join('')}data: {"choices": [}\n\n`), stall()],
      ],
    }),
    expects: { ...fails('invalidResponse', 1, false), closes: true },
  },
  {
    id: 'event-malformed-after-text',
    row: 'X1',
    about: 'An event behind some text is no JSON.',
    wires,
    scenario: (wire) => ({
      responses: [
        streamed([...upTo(streamOf(wire, sunny), 'It is '), 'data: {"delta": "sunny\n\n']),
      ],
    }),
    expects: fails('invalidResponse', 1, false),
  },
  {
    id: 'event-truncated-first',
    row: 'X1',
    about: 'The stream ends in the middle of its first event.',
    wires,
    scenario: (wire) => ({
      responses: [streamed([streamOf(wire, sunny).join('').slice(0, 40)])],
    }),
    expects: failsThrice('invalidResponse'),
  },
  {
    id: 'event-truncated-after-text',
    row: 'X1',
    about: 'The stream ends in the middle of an event behind some text.',
    wires,
    scenario: (wire) => {
      const events = streamOf(wire, sunny);
      const said = upTo(events, 'It is ');
      return { responses: [streamed([...said, (events[said.length] ?? '').slice(0, 60)])] };
    },
    expects: fails('invalidResponse', 1),
  },
  ...[undefined, 'error'].map((name): Fault => ({
    id: `stream-tool-use-failed${name === undefined ? '' : '-event'}`,
    row: 'L7',
    about: `The stream says${name === undefined ? '' : ' in an error event'} that a tool call cannot be parsed; then success.`,
    wires: ['chat'],
    scenario: () => {
      const error = {
        message: 'Failed to call a function.',
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: '<function=weather{"city"',
        status_code: 400,
      };
      return {
        responses: [
          streamed([...upTo(streamOf('chat', askOslo), '\\"Oslo'), sse({ error }, name)]),
          answering('chat', sunny),
        ],
      };
    },
    expects: { outcome: isSunny, requests: 2 },
  })),
  {
    id: 'event-null',
    row: 'X5',
    about: 'Events whose data is null, a number, a string or a list.',
    wires,
    scenario: (wire) => {
      const [first = '', ...rest] = streamOf(wire, sunny);
      const odd = ['null', '1', '"text"', '[]'].map((data) => `data: ${data}\n\n`);
      return { responses: [streamed([first, ...odd, ...rest])] };
    },
    expects: { outcome: isSunny, requests: 1 },
  },
  {
    id: 'delta-null',
    row: 'X5',
    about: 'A choice with a delta that is null, and one without any.',
    wires: ['chat'],
    scenario: () => {
      const [first = '', ...rest] = streamOf('chat', sunny);
      const odd = chatDelta({}).replace('"delta":{}', '"delta":null');
      return { responses: [streamed([first, odd, odd.replace('"delta":null,', ''), ...rest])] };
    },
    expects: { outcome: isSunny, requests: 1 },
  },
];
