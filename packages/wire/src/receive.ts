import { parsedJson } from '@millrace/core/adapter';
import { readerOf } from './body-reader.js';
import type { Decode } from './decode.js';
import type { Exchange } from './exchange.js';
import { failure } from './failure.js';
import { faultOfBody } from './fault-of.js';
import { createFraming } from './framing.js';
import type { Piece } from './piece.js';
import { readUpTo } from './read-up-to.js';
import { recordAddress } from './request-address.js';
import { createUtf8 } from './utf8.js';

/** How to decode and redact a response. */
export interface ReceiveOptions {
  /** Redacts a string. */
  readonly clean: (text: string) => string;
  /** Called with the headers before anything else. */
  readonly onHeaders: (headers: Headers) => void;
  readonly now: () => number;
  readonly decode: Decode;
}

/**
 * Sends a request and yields one lazily decoded batch per network read. The next read happens when the consumer pulls.
 * Throws the error of `send`, or a `failure` for an error response.
 */
export async function* receive(
  { vendor, send, caps }: Pick<Exchange, 'vendor' | 'send' | 'caps'>,
  signal: AbortSignal,
  { clean, onHeaders: see, now, decode }: ReceiveOptions,
): AsyncGenerator<Iterable<Piece>, void, undefined> {
  const response = await send(signal);
  const { ok, status, headers, url } = response;
  const reader = readerOf(response);
  see(headers);
  recordAddress(headers, url);
  if (!ok) {
    const text = await readUpTo(reader, caps.errorBytes);
    const fault = { message: text, ...faultOfBody(parsedJson(text)) };
    // Redacted before it is truncated: half a secret would not be found.
    const message = clean(fault.message);
    throw failure(vendor, { ...fault, message, status, headers, now: now() });
  }
  const contentType = headers.get('content-type') ?? 'no content type';
  const framing = createFraming({ vendor, contentType, caps });
  const utf8 = createUtf8();
  const leave = (): void => {
    reader?.cancel().catch(() => undefined);
  };
  // A generator that awaits a read runs its `finally` only after the read settles.
  signal.addEventListener('abort', leave);
  try {
    while (reader !== undefined && !signal.aborted) {
      const { done, value } = await reader.read();
      if (done) break;
      yield decode(framing.push(utf8.push(value)));
    }
    yield decode(framing.push(utf8.end()));
    yield decode(framing.end());
  } catch (thrown) {
    recordAddress(thrown, url);
    throw thrown;
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}
