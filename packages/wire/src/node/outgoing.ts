/** A request, as it goes over the wire. */
export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  readonly signal: AbortSignal | undefined;
}

/** How the body is framed is for whoever sends it. */
const framing: readonly string[] = ['content-length', 'transfer-encoding'];

/**
 * Reads what `fetch` is called with. A body that is neither a text nor bytes is read whole, so that its length is known.
 * Rejects with a `TypeError` where `fetch` does, as for a header that cannot be sent.
 */
export const outgoingOf = async (
  input: Parameters<typeof fetch>[0],
  init: RequestInit = {},
): Promise<Outgoing> => {
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
    throw new TypeError('An address with a name and password cannot be fetched.');
  }
  return url;
};

interface Body extends Pick<Outgoing, 'body'> {
  /** What it is, where its headers do not say so. */
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
