import { parsedJson } from '@millrace/core/adapter';
import { noteAddress } from './asked.js';
import { readerOf } from './body-reader.js';
import type { Decode } from './decode.js';
import type { Exchange } from './exchange.js';
import { failure } from './failure.js';
import { faultOfBody } from './fault-of.js';
import { createFraming } from './framing.js';
import type { Piece } from './piece.js';
import { readCapped } from './read-capped.js';
import { createUtf8 } from './utf8.js';

/** What receiving needs beside the request. */
export interface Reception {
  /** Takes the secrets out of a text. */
  readonly clean: (text: string) => string;
  /** Is shown the headers before anything else. */
  readonly see: (headers: Headers) => void;
  readonly now: () => number;
  readonly decode: Decode;
}

/**
 * Sends a request and reads what comes back: one batch for each read of the network, so that whoever pulls decides
 * when the next one happens, and takes of a batch what is wanted. Throws what `send` throws, and a `failure` for a
 * response that is an error.
 */
export async function* receive(
  { vendor, send, caps }: Pick<Exchange, 'vendor' | 'send' | 'caps'>,
  signal: AbortSignal,
  { clean, see, now, decode }: Reception,
): AsyncGenerator<Iterable<Piece>, void, undefined> {
  const response = await send(signal);
  const { ok, status, headers, url } = response;
  const reader = readerOf(response);
  see(headers);
  noteAddress(headers, url);
  if (!ok) {
    const text = await readCapped(reader, caps.errorBytes);
    const fault = { message: text, ...faultOfBody(parsedJson(text)) };
    // Before it is shortened: half a secret would not be found.
    const message = clean(fault.message);
    throw failure(vendor, { ...fault, message, status, headers, now: now() });
  }
  const contentType = headers.get('content-type') ?? 'no content type';
  const framing = createFraming({ vendor, contentType, caps });
  const utf8 = createUtf8();
  const leave = (): void => {
    reader?.cancel().catch(() => undefined);
  };
  // A generator that waits for a read runs its `finally` only when the read comes back.
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
    noteAddress(thrown, url);
    throw thrown;
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}
