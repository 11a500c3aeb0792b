import { faultOf } from './fault-of.js';
import { isRecord, parseJson } from './json.js';
import { readCapped } from './read-capped.js';

/** How a `fetch` is guarded. */
export interface GuardedFetchOptions {
  /** What does the request. Default: the global `fetch`, looked up for each request. */
  readonly fetch?: typeof fetch;
  /** Bytes of an error's body that are read. */
  readonly errorBytes: number;
}

const mostRedirects = 5;

/**
 * Makes the `fetch` that is handed to an SDK. It follows redirects only within the origin and where method and
 * body stay (307 and 308, at most 5), because the prompt would go with them; any other comes back as it is. Of
 * a response that is an error it reads the body, up to `errorBytes`, so that an SDK which reads it whole cannot
 * be flooded, and hands it on in the shape `{ error: { message, type, code } }`, the only one that SDKs
 * understand.
 */
export const guardedFetch =
  ({ fetch: base, errorBytes }: GuardedFetchOptions): typeof fetch =>
  async (input, init) => {
    const send = base ?? globalThis.fetch;
    let url = input instanceof Request ? input.url : String(input);
    let response = await send(input, { ...init, redirect: 'manual' });
    for (let count = 0; count < mostRedirects; count += 1) {
      const next = redirectOf(response, url);
      // The body of a Request, and of a stream, is gone when it has been sent.
      if (next === undefined || input instanceof Request || isStream(init?.body)) break;
      response.body?.cancel().catch(() => undefined);
      url = next;
      response = await send(url, { ...init, redirect: 'manual' });
    }
    return response.ok ? response : reduced(response, errorBytes);
  };

/** The address that a response sends on to, if it is one to follow. */
const redirectOf = ({ status, headers }: Response, from: string): string | undefined => {
  const location = headers.get('location');
  if ((status !== 307 && status !== 308) || !location) return undefined;
  if (!URL.canParse(location, from)) return undefined;
  const target = new URL(location, from);
  return target.origin === new URL(from).origin ? target.href : undefined;
};

const isStream = (body: unknown): boolean => body instanceof ReadableStream || isIterable(body);

const isIterable = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && Symbol.asyncIterator in body;

/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([101, 204, 205, 304]);

const reduced = async (response: Response, errorBytes: number): Promise<Response> => {
  const { status, statusText, headers } = response;
  if (bodiless.has(status)) return response;
  const text = await readCapped(response.body, errorBytes);
  return new Response(understandable(text), { status, statusText, headers });
};

const understandable = (text: string): string => {
  const body = parseJson(text);
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (isRecord(first) && isRecord(first['error'])) return JSON.stringify(first);
  const fault = faultOf(body);
  return fault === undefined ? text : JSON.stringify({ error: fault });
};
