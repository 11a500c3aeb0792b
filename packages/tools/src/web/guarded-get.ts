import { STATUS_CODES } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { MillraceError } from 'millrace';
import { defer, finalize, from, type Observable } from 'rxjs';
import type { buildConnector } from 'undici';
import { isPublicAddress } from './public-address.js';

/** The rules that each URL of a request must satisfy, also after a redirect. */
export interface GetRules {
  /** Whether a host may have a private address. */
  readonly isPrivateAllowed: (url: URL) => boolean;
  readonly isAllowed: (url: URL) => boolean;
  readonly ports: ReadonlySet<number>;
  readonly lookup: LookupFunction;
  readonly maxRedirects: number;
  /** Of the decompressed body. */
  readonly maxBytes: number;
  /** Throws an error if the type of a response, without parameters and in lower case, is not wanted. */
  readonly checkType: (type: string) => void;
}

export interface Fetched {
  /** The URL after all redirects, without a fragment. */
  readonly url: URL;
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly redirects: readonly string[];
}

/**
 * Requests a URL, and emits the response. Errors have a message for the model. Unsubscribing closes the connection.
 *
 * The address that a host name resolves to is checked when the socket connects to it, so no second resolution can
 * replace it.
 */
export const get$ = (address: string, rules: GetRules): Observable<Fetched> =>
  defer(() => {
    const abort = new AbortController();
    const got = follow(parsedUrl(address), rules, [], abort.signal);
    return from(got).pipe(finalize(() => abort.abort()));
  });

const follow = async (
  url: URL,
  rules: GetRules,
  redirects: readonly string[],
  signal: AbortSignal,
): Promise<Fetched> => {
  checkUrl(url, rules);
  const answer = await ask(url, rules, signal);
  if (!('location' in answer)) return { url, redirects, ...answer };
  if (redirects.length >= rules.maxRedirects) {
    throw new Error(`${shown(url)} redirects more than ${rules.maxRedirects} times.`);
  }
  return follow(parsedUrl(answer.location, url.href), rules, [...redirects, url.href], signal);
};

// ---------------------------------------------------------------- URLs

export const parsedUrl = (address: string, base?: string): URL => {
  const url = URL.canParse(address, base) ? new URL(address, base) : undefined;
  if (url === undefined) throw new Error(`${shown(address)} is not a valid URL.`);
  url.hash = '';
  return url;
};

/** The URL parser has normalized all forms of IPv4 addresses, such as `0x7f.1`, and decoded escapes of the host. */
export const checkUrl = (
  url: URL,
  {
    ports,
    isPrivateAllowed,
    isAllowed,
  }: Pick<GetRules, 'ports' | 'isPrivateAllowed' | 'isAllowed'>,
): void => {
  const refuse = (why: string): never => {
    throw new Error(`${shown(url)} must not be fetched: ${why}`);
  };
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    refuse('only http and https URLs can be fetched.');
  }
  if (url.username !== '' || url.password !== '') refuse('it contains a user name or a password.');
  if (url.port !== '' && !ports.has(Number(url.port)))
    refuse(`the port ${url.port} is not allowed.`);
  const host = bareHost(url.hostname);
  if (isIP(host) !== 0 && !isPublicAddress(host) && !isPrivateAllowed(url)) {
    refuse('its address is not public.');
  }
  if (!isAllowed(url)) refuse('it is not one of the allowed URLs.');
};

/** `[::1]` without the brackets. */
const bareHost = (hostname: string): string => hostname.replace(/^\[|\]$/gu, '');

/** A URL for an error message. It may come from a server, and contain a password. */
const shown = (url: URL | string): string => {
  const text = typeof url === 'string' ? url : `${url.protocol}//${url.host}${url.pathname}`;
  return `'${text.length > 200 ? `${text.slice(0, 200)}…` : text}'`;
};

// ---------------------------------------------------------------- one request

type Answer = Pick<Fetched, 'status' | 'contentType' | 'body'> | { readonly location: string };

const ask = async (url: URL, rules: GetRules, signal: AbortSignal): Promise<Answer> => {
  const { Agent, buildConnector, request } = await loadClient('fetchPage()');
  // Aborting also ends a connection that is not established yet. Each has a signal of its own, for few listeners.
  const options = { lookup: rules.lookup, signal: AbortSignal.any([signal]) };
  const connect = rules.isPrivateAllowed(url)
    ? buildConnector(options)
    : publicOnly(buildConnector({ ...options, lookup: publicLookup(rules.lookup) }));
  // The caller limits the time.
  const agent = new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 });
  try {
    const response = await request(url, { dispatcher: agent, signal, headers: requestHeaders });
    return await answerOf(url, response, rules);
  } catch (error) {
    throw explained(error, url);
  } finally {
    void agent.destroy();
  }
};

export const loadClient = async (owner: string) => {
  try {
    return await import('undici');
  } catch (cause) {
    throw new MillraceError('config', `${owner} needs a client: npm install undici@7`, { cause });
  }
};

const requestHeaders = {
  accept:
    'text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.1',
  'accept-encoding': 'gzip, deflate, br',
  'user-agent': 'Mozilla/5.0 (compatible; Millrace)',
};

interface HttpResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Readable;
}

const answerOf = async (
  url: URL,
  { statusCode: status, headers, body }: HttpResponse,
  { maxBytes, checkType }: GetRules,
): Promise<Answer> => {
  const header = (name: string): string => [headers[name] ?? ''].flat()[0] ?? '';
  const location = header('location');
  if (status >= 300 && status < 400 && location !== '') return { location };
  if (status < 200 || status >= 300) {
    throw new Error(`${shown(url)} returned the status ${statusText(status)}.`);
  }
  const contentType = header('content-type');
  checkType(mediaType(contentType));
  const encoding = header('content-encoding').trim().toLowerCase();
  return { status, contentType, body: await bytesOf(body, encoding, url, maxBytes) };
};

const statusText = (status: number): string => `${status} ${STATUS_CODES[status] ?? ''}`.trim();

/** The type in a header `content-type`, in lower case and without parameters. */
export const mediaType = (contentType: string): string =>
  (contentType.split(';')[0] ?? '').trim().toLowerCase();

/** Reads a body, and fails as soon as it is too large: a few kilobytes may decompress to gigabytes. */
const bytesOf = async (
  body: Readable,
  encoding: string,
  url: URL,
  maxBytes: number,
): Promise<Uint8Array> => {
  const decompress = decompression(url, encoding);
  // An error of one stream destroys the other; the loop below gets it.
  const source = decompress === undefined ? body : pipeline(body, decompress, () => undefined);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source) {
    if (!(chunk instanceof Uint8Array)) continue;
    size += chunk.length;
    if (size > maxBytes) throw new Error(`${shown(url)} has more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const decompression = (url: URL, encoding: string): Duplex | undefined => {
  switch (encoding) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      throw new Error(`${shown(url)} uses a compression that is not supported.`);
  }
};

// ---------------------------------------------------------------- connections

/** Checks literal addresses: for these, a connection resolves no name. */
export const publicOnly =
  (connect: buildConnector.connector): buildConnector.connector =>
  (options, callback) => {
    const host = bareHost(options.hostname);
    if (isIP(host) === 0 || isPublicAddress(host)) connect(options, callback);
    else callback(notPublic(host), null);
  };

/** Resolves to public addresses only, so that a connection to another is impossible. */
export const publicLookup =
  (lookup: LookupFunction): LookupFunction =>
  (hostname, options, callback) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const all = Array.isArray(found) ? found : [{ address: found, family: isIP(found) }];
      const addresses = error === null ? all.filter(({ address }) => isPublicAddress(address)) : [];
      const [first] = addresses;
      if (first === undefined) callback(error ?? notPublic(hostname), '');
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });

const notPublic = (host: string): Error =>
  new Error(`'${host}' must not be fetched: its address is not public.`);

// ---------------------------------------------------------------- errors

/** Replaces an error of the network by one for a model. Errors of this file have no code. */
const explained = (error: unknown, url: URL): unknown => {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined;
  if (code === undefined) return error;
  return new Error(`${shown(url)} cannot be fetched: ${reasonOf(code)}`, { cause: error });
};

const reasonOf = (code: string): string => {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name cannot be resolved.';
  if (code === 'ECONNREFUSED') return 'the server refuses connections.';
  if (code.startsWith('Z_') || code.startsWith('ERR_BROTLI') || code.startsWith('ERR__ERROR')) {
    return 'the compressed data is invalid.';
  }
  if (/CERT|SSL|TLS|SIGNATURE/u.test(code)) return 'the connection is not secure.';
  return 'the connection failed.';
};
