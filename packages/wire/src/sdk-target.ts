// Loaded with the SDK of a vendor, after the model is created.
import { MillraceError } from 'millrace';
import { longestDelayMs } from 'millrace/values';
import type { Access } from './access.js';
import type { WireRequest } from './exchange.js';
import { describe } from './plain-error.js';

/** Options that the clients of vendors' SDKs have in common. */
export interface SdkOptions {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly defaultHeaders: Access['headers'];
  readonly maxRetries: number;
  readonly timeout: number;
  readonly logLevel: 'off';
  readonly dangerouslyAllowBrowser: boolean;
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

/** The URL and the headers of all requests. */
export type Target = Omit<WireRequest, 'body'>;

/** Lets the SDK build a request. Rejects with `config` if it fails to load, or refuses to run in a browser. */
export const loadTarget = async (
  { baseURL, headers, dangerouslyAllowBrowser }: Access,
  path: string,
  load: (options: SdkOptions) => Promise<SdkClient>,
): Promise<Target> => {
  const client = await load({
    baseURL,
    apiKey: 'none',
    defaultHeaders: headers,
    maxRetries: 0,
    timeout: longestDelayMs,
    logLevel: 'off',
    dangerouslyAllowBrowser,
    fetch: () => Promise.reject(new Error('The SDK only builds requests.')),
  }).catch((error: unknown) => {
    throw isAboutBrowsers(error) ? keyInBrowser(error) : notLoaded(error);
  });
  const { url, req } = await client.buildRequest({
    method: 'post',
    path,
    body: '{}',
    // Without it, the SDK would serialize the body.
    headers: { 'content-type': 'application/json' },
  });
  return { url, headers: Object.fromEntries(req.headers) };
};

/** The SDKs of both vendors throw such an error, and only its message differs from those of others. */
const isAboutBrowsers = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('browser-like environment');

const keyInBrowser = (cause: unknown): MillraceError =>
  new MillraceError(
    'config',
    "Everyone who opens this page can read the key of its model. Call the model on your server, or, for a key that is the user's own, set the option 'dangerouslyAllowBrowser' to true.",
    { cause },
  );

const notLoaded = (cause: unknown): MillraceError =>
  new MillraceError(
    'config',
    `The SDK of the model's vendor failed to load. Install the dependencies again: ${describe(cause, (text) => text)}`,
    { cause },
  );
