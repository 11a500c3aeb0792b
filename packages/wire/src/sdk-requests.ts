import type { Access, Credentials } from './access.js';
import type { Exchange, WireRequest } from './exchange.js';

/** Options that the clients of vendors' SDKs have in common. */
export interface SdkOptions {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly defaultHeaders: Access['headers'];
  readonly maxRetries: number;
  readonly timeout: number;
  readonly logLevel: 'off';
  /** Never called. Without it, an SDK fails if there is no global `fetch`. */
  readonly fetch: typeof fetch;
}

/** The part of a vendor's SDK that builds a request without sending it. */
export interface SdkClient {
  buildRequest(options: {
    readonly method: 'post';
    readonly path: string;
    readonly body: string;
    readonly headers: Readonly<Record<string, string>>;
  }): Promise<{ readonly url: string; readonly req: { readonly headers: Headers } }>;
}

/** Returns the part of an exchange that sends a serialized body. */
export type SdkRequests = (body: string) => Pick<Exchange, 'secrets' | 'request'>;

/**
 * Builds requests with a vendor's SDK. `load` creates its client with the first request. The SDK builds the URL and
 * the headers once, because they do not change; each request adds its key. The client has a placeholder key, which
 * stops it from reading one from the environment. Millrace handles retries, timeouts and logs.
 */
export const sdkRequests = (
  { baseUrl, headers, credentials, secrets: known }: Access,
  path: string,
  load: (options: SdkOptions) => Promise<SdkClient>,
): SdkRequests => {
  let target: Target | undefined;
  let loading: Promise<Target> | undefined;
  const loadTarget = async (): Promise<Target> => {
    const client = await load({
      baseURL: baseUrl,
      apiKey: 'none',
      defaultHeaders: headers,
      maxRetries: 0,
      // The maximum delay of a timer.
      timeout: 2 ** 31 - 1,
      logLevel: 'off',
      fetch: () => Promise.reject(new Error('The SDK only builds requests.')),
    });
    const found = await targetOf(client, path);
    target = typeof credentials === 'function' ? found : withKey(found, credentials);
    return target;
  };
  return (body) => {
    const ready = target;
    if (ready !== undefined && typeof credentials !== 'function') {
      return { secrets: known, request: () => ({ body, ...ready }) };
    }
    const secrets = [...known];
    const request = async (): Promise<WireRequest> => {
      const key = typeof credentials === 'function' ? await credentials() : credentials;
      if (!secrets.includes(key.secret)) secrets.push(key.secret);
      const found =
        target ?? (await (loading ??= loadTarget().finally(() => (loading = undefined))));
      return { ...withKey(found, key), body };
    };
    return { secrets, request };
  };
};

/** The URL and the headers of all requests. */
type Target = Omit<WireRequest, 'body'>;

const targetOf = async (client: SdkClient, path: string): Promise<Target> => {
  const { url, req } = await client.buildRequest({
    method: 'post',
    path,
    body: '{}',
    // Without it, the SDK would serialize the body.
    headers: { 'content-type': 'application/json' },
  });
  return { url, headers: Object.fromEntries(req.headers) };
};

const withKey = ({ url, headers }: Target, { headers: added }: Credentials): Target => ({
  url,
  headers: { ...headers, ...added },
});
