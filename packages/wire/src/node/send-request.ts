import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { OutgoingRequest } from './outgoing-request.js';

/** How to send requests of one protocol. */
export interface Transport {
  /** The `request` function of `node:http` or `node:https`. */
  readonly createRequest: (url: URL, options: RequestOptions) => ClientRequest;
  readonly agent: Agent;
}

/**
 * Sends a request and resolves with its response once the headers have arrived. Rejects as `fetch` does if the
 * connection fails. The signal aborts immediately, even while the body is being received.
 *
 * It never retries, not even if the server closes an idle connection while the request goes out: the server may have
 * processed it, and retries belong to the caller, who counts attempts.
 */
export const sendRequest = (
  { url, method, headers, body, signal }: OutgoingRequest,
  { createRequest: begin, agent }: Transport,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = begin(url, { method, headers, agent });
    let message: IncomingMessage | undefined;
    const abort = (): void => {
      (message ?? request).destroy();
      // A request that waits for a connection emits no error before it has one.
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
