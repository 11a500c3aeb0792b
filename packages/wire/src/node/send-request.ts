import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Outgoing } from './outgoing.js';

/** How requests of one protocol are begun, and over whose connections. */
export interface Transport {
  /** That of `node:http`, or of `node:https`. */
  readonly begin: (url: URL, options: RequestOptions) => ClientRequest;
  readonly agent: Agent;
}

/**
 * Sends a request, and gives its response when the headers have come. Rejects as `fetch` does where the connection
 * fails. The signal aborts at once, also the response that has begun.
 *
 * It is sent once, also where a server closes a kept connection just when it goes out: whether it was read cannot be
 * known, and to send it again is for whoever counts the attempts.
 */
export const sendRequest = (
  { url, method, headers, body, signal }: Outgoing,
  { begin, agent }: Transport,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = begin(url, { method, headers, agent });
    let message: IncomingMessage | undefined;
    const abort = (): void => {
      (message ?? request).destroy();
      // One that waits for a connection would not tell before it has one.
      reject(new Error('The request was aborted.'));
    };
    signal?.addEventListener('abort', abort);
    request.once('close', () => signal?.removeEventListener('abort', abort));
    request.once('response', (arrived) => {
      message = arrived;
      resolve(arrived);
    });
    request.on('error', (cause) => {
      message?.destroy(cause);
      reject(new TypeError('fetch failed', { cause }));
    });
    request.end(body);
  });
