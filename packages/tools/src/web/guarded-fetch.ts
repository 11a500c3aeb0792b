import { checkOptions } from 'millrace/values';
import { type FetchPageOptions, rules, rulesOf } from './fetch-page.js';
import { checkUrl, loadClient, parsedUrl, publicLookup, publicOnly } from './guarded-get.js';

/** Options of `guardedFetch`. */
export type GuardedFetchOptions = Pick<
  FetchPageOptions,
  'allowPrivate' | 'isAllowed' | 'ports' | 'lookup'
>;

/** A request of `guardedFetch`: a part of that of the global `fetch`. */
export interface GuardedRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly redirect?: 'manual';
  readonly signal?: AbortSignal;
}

/** A response of `guardedFetch`: a part of that of the global `fetch`. */
export interface GuardedResponse {
  readonly status: number;
  readonly headers: Iterable<[name: string, value: string]> & { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/**
 * Creates a `fetch` that only connects to public addresses: the address that a host name resolves to is checked when the
 * socket connects to it. It returns redirects instead of following them, so that the caller can check them. Rejects for
 * other addresses, ports and schemes, and for failed connections. For programs that pass a `fetch` on, such as the `http`
 * resource of `flowAgent`.
 */
export const guardedFetch = (
  options: GuardedFetchOptions = {},
): ((url: string, request?: GuardedRequest) => Promise<GuardedResponse>) => {
  const { allowPrivate, isAllowed, ports, lookup } = rules;
  checkOptions('guardedFetch()', options, { allowPrivate, isAllowed, ports, lookup });
  const own = rulesOf(options);
  return async (address, request = {}) => {
    const url = parsedUrl(address);
    checkUrl(url, own);
    const { Agent, buildConnector, fetch } = await loadClient('guardedFetch()');
    const connect = own.isPrivateAllowed(url)
      ? buildConnector({ lookup: own.lookup })
      : publicOnly(buildConnector({ lookup: publicLookup(own.lookup) }));
    // Each connection serves one request: the next one may be to another address.
    const dispatcher = new Agent({ connect, pipelining: 0 });
    return fetch(url, { ...request, redirect: 'manual', dispatcher });
  };
};
