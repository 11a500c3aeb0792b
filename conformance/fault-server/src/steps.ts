import type { Bytes, Heartbeat, Pieces, ResponseScript, Step } from './scenario.js';

/** Sends the status line and the headers. */
export const status = (code: number, headers: Readonly<Record<string, string>> = {}): Step => ({
  type: 'status',
  code,
  headers,
});

/** Sends bytes. */
export const bytes = (
  what: Bytes,
  options: { readonly times?: number; readonly pieces?: Pieces } = {},
): Step => ({ type: 'bytes', bytes: what, ...options });

/** Says nothing for a while, in milliseconds. */
export const wait = (ms: number): Step => ({ type: 'wait', ms });

/** Breaks the connection off with a TCP reset. */
export const reset: Step = { type: 'reset' };

/** Closes the connection in good order, in the middle of the response. */
export const hangUp: Step = { type: 'hangUp' };

/** Says nothing more, but for heartbeats, until the client leaves. */
export const stall = (heartbeat?: Heartbeat): Step => ({
  type: 'stall',
  ...(heartbeat === undefined ? {} : { heartbeat }),
});

/** Sends the same bytes until the client leaves. */
export const forever = (what: string): Step => ({ type: 'forever', bytes: what });

/** The status and the headers of a stream of events. */
export const streamHeaders: Step = status(200, {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
});

/** Answers with a stream of events, and ends. */
export const streamed = (events: readonly string[], pieces: Pieces = 'whole'): ResponseScript => [
  streamHeaders,
  bytes(events.join(''), { pieces }),
];

/** Answers with a JSON body, and ends. */
export const json = (
  code: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): ResponseScript => [
  status(code, { 'content-type': 'application/json', ...headers }),
  bytes(JSON.stringify(body)),
];
