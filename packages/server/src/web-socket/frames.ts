import { isMillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { badRequest, fieldOf, idOf, isShortId } from '../inbound.js';

/** A frame of a client. */
export type ClientFrame =
  | { readonly type: 'abort'; readonly requestId: string }
  /** A frame that is answered with an error. */
  | { readonly type: 'malformed'; readonly requestId: string; readonly errorText: string }
  | AskingFrame;

/** A frame that is answered as a request over HTTP would be. */
export interface AskingFrame {
  readonly type: 'send' | 'resume';
  readonly requestId: string;
  /** The id of the conversation. */
  readonly id: string;
  readonly headers: Headers;
  /** The body of the request over HTTP, for `send`. */
  readonly body: string | undefined;
}

/** A message that cannot be answered: the socket is closed. */
export class Violation extends Error {
  readonly code: number;
  constructor(code: number, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** Reads a message of a client. Throws a `Violation` if it has no id to answer to. */
export const frameOf = (message: unknown): ClientFrame => {
  if (typeof message !== 'string') throw new Violation(1003, 'Only text frames are supported.');
  const frame = parsedJson(message);
  if (!isRecord(frame)) throw new Violation(1007, 'A frame must be a JSON object.');
  const requestId = fieldOf(frame, 'requestId');
  if (!isShortId(requestId)) throw new Violation(1008, "A frame must have a 'requestId'.");
  if (fieldOf(frame, 'type') === 'abort') return { type: 'abort', requestId };
  try {
    return askingFrame(frame, requestId);
  } catch (cause) {
    if (!isMillraceError(cause)) throw cause;
    return { type: 'malformed', requestId, errorText: cause.userMessage };
  }
};

const askingFrame = (frame: object, requestId: string): AskingFrame => {
  const type = fieldOf(frame, 'type');
  const id = idOf(fieldOf(frame, 'id'), 'id');
  const headers = headersOf(fieldOf(frame, 'headers'));
  if (type === 'send') return { type, requestId, id, headers, body: bodyOf(frame) };
  if (type !== 'resume') throw badRequest("'type' must be 'send', 'resume' or 'abort'");
  // A replay omits discarded attempts, so its chunks have other numbers than those of the first reader.
  if (fieldOf(frame, 'lastSequence') !== undefined) {
    throw badRequest("an answer is replayed from its start, without 'lastSequence'");
  }
  return { type, requestId, id, headers, body: undefined };
};

/** Builds the body that the HTTP transport of the AI SDK would send. */
const bodyOf = (frame: object): string => {
  const body = fieldOf(frame, 'body') ?? {};
  if (!isRecord(body)) throw badRequest("'body' must be an object");
  const own = ['id', 'messages', 'trigger', 'messageId'].map((key) => [key, fieldOf(frame, key)]);
  return JSON.stringify({ ...body, ...Object.fromEntries(own) });
};

const headersOf = (given: unknown): Headers => {
  try {
    return new Headers(isRecord(given) ? Object.entries(given).map(textPair) : []);
  } catch {
    throw badRequest("'headers' must be names with strings");
  }
};

const textPair = ([name, value]: readonly [string, unknown]): [string, string] => {
  if (typeof value === 'string') return [name, value];
  throw badRequest('the value of a header must be a string');
};

/** Headers that apply only to the handshake: those of its connection and its body. */
const handshakeOnly = [
  'connection',
  'content-length',
  'content-type',
  'keep-alive',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-version',
  'transfer-encoding',
  'upgrade',
];

/**
 * The request that a frame stands for. It has the query and the headers of the handshake; a frame adds only the named ones, and
 * replaces none: a proxy may have authenticated the handshake.
 */
export const requestOf = (
  handshake: Request,
  frame: AskingFrame,
  added: readonly string[],
  signal: AbortSignal,
): Request => {
  const { type, id, body } = frame;
  const url = new URL(handshake.url);
  if (type === 'resume') url.pathname += `/${encodeURIComponent(id)}/stream`;
  const headers = new Headers(handshake.headers);
  handshakeOnly.forEach((name) => {
    headers.delete(name);
  });
  added.forEach((name) => {
    const value = frame.headers.get(name);
    if (value !== null && !headers.has(name)) headers.set(name, value);
  });
  if (body === undefined) return new Request(url, { headers, signal });
  headers.set('content-type', 'application/json');
  return new Request(url, { method: 'POST', headers, body, signal });
};
