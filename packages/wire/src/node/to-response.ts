import type { IncomingMessage } from 'node:http';
import { buildResponse, hasBody } from '../build-response.js';
import { decompress } from './decompress.js';
import { LazyResponse } from './lazy-response.js';
import type { OutgoingRequest } from './outgoing-request.js';
import { readableReader } from './readable-reader.js';

/**
 * Converts a Node response to a `Response`, which supports `bodyReader`. If the connection breaks, a read rejects as
 * with `fetch`; after an abort, with the reason of the signal.
 */
export const toResponse = async (
  { url, method, signal }: OutgoingRequest,
  message: IncomingMessage,
): Promise<Response> => {
  const { statusCode: status = 0, statusMessage: statusText = '', rawHeaders } = message;
  const head = { status, statusText, headers: pairsOf(rawHeaders), url: url.href };
  if (!hasBody(status) || method === 'HEAD') {
    message.resume();
    return buildResponse(null, head);
  }
  const reader = readableReader(await decompress(message), (cause) =>
    signal?.aborted === true ? signal.reason : new TypeError('terminated', { cause }),
  );
  return new LazyResponse(head, reader);
};

const pairsOf = (rawHeaders: readonly string[]): [name: string, value: string][] =>
  rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? '']] : []));
