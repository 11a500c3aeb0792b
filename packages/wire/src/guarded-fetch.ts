import { isRecord, parsedJson } from '@millrace/core/adapter';
import { noteAddress } from './asked.js';
import { readerOf } from './body-reader.js';
import { defaultCaps } from './caps.js';
import { faultOfBody } from './fault-of.js';
import { withoutLimits } from './fetch-limits.js';
import { readCapped } from './read-capped.js';
import { hasBody, responseWith } from './response-with.js';
import type { VendorSettings } from './settings.js';
import { wellFormed } from './well-formed.js';

const mostRedirects = 5;

/**
 * Makes the `fetch` that is handed to an SDK. It follows redirects only within the origin and where method and
 * body stay (307 and 308, at most 5), because the prompt would go with them; any other comes back as it is. Of
 * a response that is an error it reads the body, up to `caps.errorBytes`, so that an SDK which reads it whole cannot
 * be flooded, and hands it on in the shape `{ error: { message, type, code } }`, the only one that SDKs
 * understand. It lifts the 5 minutes after which the `fetch` of Node fails by itself. It asks for no compression unless the request does, and puts U+FFFD in place of half characters in a
 * body that is a JSON text.
 */
export const guardedFetch =
  ({ fetch: base, caps }: Pick<VendorSettings, 'fetch' | 'caps'>): typeof fetch =>
  async (input, init) => {
    // Looked up for each request: somebody may replace the global one.
    const send = base ?? globalThis.fetch;
    const request = prepared(input, init);
    let url = input instanceof Request ? input.url : String(input);
    let response = await noting(url, send(input, request));
    for (let count = 0; count < mostRedirects; count += 1) {
      const next = redirectOf(response, url);
      // The body of a Request, and of a stream, is gone when it has been sent.
      if (next === undefined || input instanceof Request || isStream(init?.body)) break;
      readerOf(response)
        ?.cancel()
        .catch(() => undefined);
      url = next;
      response = await noting(url, send(url, request));
    }
    return response.ok
      ? response
      : reduced(response, url, caps?.errorBytes ?? defaultCaps.errorBytes);
  };

const prepared = (input: Parameters<typeof fetch>[0], init: RequestInit = {}): RequestInit => {
  const { body, headers: given = input instanceof Request ? input.headers : {} } = init;
  const headers = new Headers(given);
  // The `fetch` of Node 20 waits for ever behind compressed data that is broken.
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity');
  return withoutLimits({
    ...init,
    ...(typeof body === 'string' ? { body: wellFormed(body) } : {}),
    headers,
    redirect: 'manual',
  });
};

/** An error of `fetch` does not tell whom it asked. */
const noting = async (url: string, sent: Promise<Response>): Promise<Response> => {
  try {
    return await sent;
  } catch (thrown) {
    noteAddress(thrown, url);
    throw thrown;
  }
};

/** The address that a response sends on to, if it is one to follow. */
const redirectOf = ({ status, headers }: Response, from: string): string | undefined => {
  if (status !== 307 && status !== 308) return undefined;
  const location = headers.get('location');
  if (!location || !URL.canParse(location, from)) return undefined;
  const target = new URL(location, from);
  return target.origin === new URL(from).origin ? target.href : undefined;
};

const isStream = (body: unknown): boolean => body instanceof ReadableStream || isIterable(body);

const isIterable = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && Symbol.asyncIterator in body;

const reduced = async (response: Response, url: string, errorBytes: number): Promise<Response> => {
  const { status, headers } = response;
  if (!hasBody(status)) return response;
  const text = await readCapped(readerOf(response), errorBytes);
  const made = responseWith(understandable(text), { status, headers });
  noteAddress(made.headers, url);
  return made;
};

const understandable = (text: string): string => {
  const body = parsedJson(text);
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (isRecord(first) && isRecord(first['error'])) return JSON.stringify(first);
  const fault = faultOfBody(body);
  return fault === undefined ? text : JSON.stringify({ error: fault });
};
