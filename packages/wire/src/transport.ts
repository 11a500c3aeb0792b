import { nodeTransfer, withoutLimits } from './dispatcher.js';
import type { Receiver, ResponseHead, Transfer, WireRequest } from './exchange.js';

/**
 * Creates the transfer of a request: over the connections of Node's `fetch`, without its streams and promises, or over
 * `fetch` if one is given, if the global one was replaced, or on another platform.
 */
export const createTransfer = (
  request: WireRequest,
  receiver: Receiver,
  fetch: typeof globalThis.fetch | undefined,
): Transfer =>
  (fetch === undefined ? nodeTransfer(request, receiver) : undefined) ??
  fetchTransfer(fetch ?? globalThis.fetch, request, receiver);

const fetchTransfer = (
  fetch: typeof globalThis.fetch,
  request: WireRequest,
  receiver: Receiver,
): Transfer => {
  const controller = new AbortController();
  const { signal } = controller;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let isEncoded = false;

  const unlessAborted = <T>(task: (value: T) => void) => {
    return (value: T): void => {
      if (!signal.aborted) task(value);
    };
  };
  const fail = unlessAborted((thrown: unknown) => receiver.fail(thrown));
  const end = (): void => {
    receiver.end();
    // Node 24 reads data after the end of the compressed data, without limit.
    if (isEncoded) controller.abort();
  };
  const read = (): void => {
    if (reader === undefined) end();
    else {
      reader
        .read()
        .then(
          unlessAborted(({ done, value }) => {
            if (done) end();
            else if (receiver.bytes(value)) read();
          }),
        )
        .catch(fail);
    }
  };
  const abort = (): void => {
    controller.abort();
    reader?.cancel().catch(() => undefined);
  };
  const receive = (response: Response): void => {
    // An older `fetch` may leave it undefined.
    const stream: ReadableStream<Uint8Array> | null | undefined = response.body;
    reader = stream?.getReader();
    isEncoded = Boolean(response.headers.get('content-encoding'));
    if (!signal.aborted) receiver.head(response);
    if (signal.aborted) abort();
    else read();
  };
  return {
    start: () => {
      Promise.resolve()
        .then(() => fetch(request.url, initOf(request, signal)))
        .then(receive)
        .catch(fail);
    },
    resume: read,
    abort,
  };
};

const initOf = ({ headers, body }: WireRequest, signal: AbortSignal): RequestInit =>
  withoutLimits({
    method: 'POST',
    // The `fetch` of Node 20 hangs forever on corrupt compressed data.
    headers: { 'accept-encoding': 'identity', ...headers },
    body,
    signal,
    redirect: 'manual',
  });

/**
 * The target of a redirect, if it is to be followed: within the origin, because the prompt goes along, and only if the
 * method and the body stay.
 */
export const redirectOf = ({ status, headers }: ResponseHead, from: string): string | undefined => {
  if (status !== 307 && status !== 308) return undefined;
  const location = headers.get('location');
  if (!location || !URL.canParse(location, from)) return undefined;
  const target = new URL(location, from);
  return target.origin === new URL(from).origin ? target.href : undefined;
};
