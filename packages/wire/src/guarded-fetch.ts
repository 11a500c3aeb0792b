import { isRecord, parsedJson } from '@millrace/core/adapter';
import { readerOf } from './body-reader.js';
import { buildResponse, hasBody } from './build-response.js';
import { defaultCaps } from './caps.js';
import { faultOfBody } from './fault-of.js';
import { withoutLimits } from './fetch-limits.js';
import { readUpTo } from './read-up-to.js';
import { recordAddress } from './request-address.js';
import type { VendorSettings } from './settings.js';
import { wellFormed } from './well-formed.js';

const maxRedirects = 5;

/**
 * Creates the `fetch` for an SDK.
 *
 * - It follows up to 5 redirects, only within the origin and only if method and body stay (307 and 308), because the
 *   prompt goes along. Any other redirect is returned as a response.
 * - It reads up to `caps.errorBytes` of the body of an error, because an SDK reads all of it, and converts the error to
 *   `{ error: { message, type, code } }`, the only shape that SDKs understand.
 * - It lifts the 5-minute limits of Node's `fetch`, and asks for no compression unless the request does.
 * - It replaces lone surrogates in a JSON body with U+FFFD.
 */
export const guardedFetch =
  ({ fetch: base, caps }: Pick<VendorSettings, 'fetch' | 'caps'>): typeof fetch =>
  async (input, init) => {
    // Looked up for each request, because the global `fetch` may be replaced.
    const send = base ?? globalThis.fetch;
    const request = requestInit(input, init);
    let url = input instanceof Request ? input.url : String(input);
    let response = await recordingAddress(url, send(input, request));
    for (let count = 0; count < maxRedirects; count += 1) {
      const next = redirectOf(response, url);
      // The body of a Request, or a stream, is consumed once it has been sent.
      if (next === undefined || input instanceof Request || isStream(init?.body)) break;
      readerOf(response)
        ?.cancel()
        .catch(() => undefined);
      url = next;
      response = await recordingAddress(url, send(url, request));
    }
    return response.ok
      ? response
      : readErrorBody(response, url, caps?.errorBytes ?? defaultCaps.errorBytes);
  };

const requestInit = (input: Parameters<typeof fetch>[0], init: RequestInit = {}): RequestInit => {
  const { body, headers: given = input instanceof Request ? input.headers : {} } = init;
  const headers = new Headers(given);
  // The `fetch` of Node 20 hangs forever on corrupt compressed data.
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity');
  return withoutLimits({
    ...init,
    ...(typeof body === 'string' ? { body: wellFormed(body) } : {}),
    headers,
    redirect: 'manual',
  });
};

/** Errors of `fetch` do not contain the URL. */
const recordingAddress = async (url: string, sent: Promise<Response>): Promise<Response> => {
  try {
    return await sent;
  } catch (thrown) {
    recordAddress(thrown, url);
    throw thrown;
  }
};

/** The target of a redirect, if it is to be followed. */
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

const readErrorBody = async (
  response: Response,
  url: string,
  errorBytes: number,
): Promise<Response> => {
  const { status, headers } = response;
  if (!hasBody(status)) return response;
  const text = await readUpTo(readerOf(response), errorBytes);
  const readable = buildResponse(toSdkErrorBody(text), { status, headers });
  recordAddress(readable.headers, url);
  return readable;
};

const toSdkErrorBody = (text: string): string => {
  const body = parsedJson(text);
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (isRecord(first) && isRecord(first['error'])) return JSON.stringify(first);
  const fault = faultOfBody(body);
  return fault === undefined ? text : JSON.stringify({ error: fault });
};
