/** A normalized request. */
export interface OutgoingRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Headers that `node:http` sets for the body. */
const framing: readonly string[] = ['content-length', 'transfer-encoding'];

/**
 * Normalizes the arguments of `fetch`. A body that is neither a string nor bytes is buffered, because its length must
 * be known. Rejects with a `TypeError` if `fetch` does, as for an invalid header.
 */
export const toOutgoingRequest = async (
  input: Parameters<typeof fetch>[0],
  init: RequestInit = {},
): Promise<OutgoingRequest> => {
  const given = input instanceof Request ? input : undefined;
  const headers = new Headers(init.headers ?? given?.headers);
  framing.forEach((name) => headers.delete(name));
  const { body, type } = await bodyOf(init.body ?? given?.body);
  if (type !== null && !headers.has('content-type')) headers.set('content-type', type);
  return {
    url: addressOf(input instanceof Request ? input.url : input),
    method: (init.method ?? given?.method ?? 'GET').toUpperCase(),
    headers: { accept: '*/*', 'user-agent': 'node', ...Object.fromEntries(headers) },
    body,
    signal: init.signal ?? given?.signal,
  };
};

const addressOf = (address: string | URL): URL => {
  const url = new URL(address);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError('fetch failed', { cause: new Error(`unknown scheme ${url.protocol}`) });
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('A URL with a user name or password cannot be fetched.');
  }
  return url;
};

interface Body extends Pick<OutgoingRequest, 'body'> {
  /** The content type, unless the headers set one. */
  readonly type: string | null;
}

const bodyOf = async (given: RequestInit['body']): Promise<Body> => {
  if (given === undefined || given === null) return { body: undefined, type: null };
  if (typeof given === 'string') return { body: given, type: 'text/plain;charset=UTF-8' };
  if (given instanceof Uint8Array) return { body: given, type: null };
  const encoded = new Response(given);
  return {
    body: new Uint8Array(await encoded.arrayBuffer()),
    type: encoded.headers.get('content-type'),
  };
};
