import { parsedJson } from '@millrace/core/adapter';
import { noteAddress } from './asked.js';
import type { Exchange } from './exchange.js';
import { failure } from './failure.js';
import { faultOfBody } from './fault-of.js';
import { createFraming, type Frame } from './framing.js';
import { readCapped } from './read-capped.js';

/** What receiving needs beside the request. */
export interface Reception {
  /** Takes the secrets out of a text. */
  readonly clean: (text: string) => string;
  /** Is shown the headers before anything else. */
  readonly see: (headers: Headers) => void;
  readonly now: () => number;
}

/**
 * Sends a request and cuts what comes back into frames: one batch for each read of the network, so that
 * whoever pulls decides when the next one happens. Throws what `send` throws, and a `failure` for a response
 * that is an error.
 */
export async function* receive(
  { vendor, send, caps }: Pick<Exchange, 'vendor' | 'send' | 'caps'>,
  signal: AbortSignal,
  { clean, see, now }: Reception,
): AsyncGenerator<readonly Frame[], void, undefined> {
  const response = await send(signal);
  const { ok, status, headers } = response;
  const body: ReadableStream<Uint8Array> | null = response.body;
  see(headers);
  noteAddress(headers, response.url);
  if (!ok) {
    const text = await readCapped(body, caps.errorBytes);
    const fault = { message: text, ...faultOfBody(parsedJson(text)) };
    // Before it is shortened: half a secret would not be found.
    const message = clean(fault.message);
    throw failure(vendor, { ...fault, message, status, headers, now: now() });
  }
  const contentType = headers.get('content-type') ?? 'no content type';
  const framing = createFraming({ vendor, contentType, caps });
  try {
    if (body !== null) for await (const text of texts(body, signal)) yield framing.push(text);
  } catch (thrown) {
    noteAddress(thrown, response.url);
    throw thrown;
  }
  yield framing.end();
}

async function* texts(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  const leave = (): void => {
    reader.cancel().catch(() => undefined);
  };
  // A generator that waits for a read runs its `finally` only when the read comes back.
  signal.addEventListener('abort', leave);
  try {
    while (!signal.aborted) {
      const { done, value } = await reader.read();
      if (done) break;
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}
