import type { IncomingMessage } from 'node:http';
import { hasBody, responseWith } from '../response-with.js';
import { decompressed } from './decompressed.js';
import { LateResponse } from './late-response.js';
import type { Outgoing } from './outgoing.js';
import { readableReader } from './readable-reader.js';

/**
 * Makes the `Response` to a request of what came back for it. Its body can be read without its web stream, by the
 * `bodyReader`. A read rejects as one of `fetch` does when the connection breaks, or with the reason of the signal.
 */
export const responseTo = async (
  { url, method, signal }: Outgoing,
  message: IncomingMessage,
): Promise<Response> => {
  const { statusCode: status = 0, statusMessage: statusText = '', rawHeaders } = message;
  const head = { status, statusText, headers: pairsOf(rawHeaders), url: url.href };
  if (!hasBody(status) || method === 'HEAD') {
    message.resume();
    return responseWith(null, head);
  }
  const reader = readableReader(await decompressed(message), (cause) =>
    signal?.aborted === true ? signal.reason : new TypeError('terminated', { cause }),
  );
  return new LateResponse(head, reader);
};

const pairsOf = (rawHeaders: readonly string[]): [name: string, value: string][] =>
  rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? '']] : []));
