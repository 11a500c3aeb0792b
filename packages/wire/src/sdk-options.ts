import type { Access } from './access.js';
import { guardedFetch } from './guarded-fetch.js';
import type { VendorSettings } from './settings.js';

/** What the clients of vendors' SDKs are made with. */
export interface SdkOptions {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly defaultHeaders: Access['headers'];
  readonly maxRetries: number;
  readonly timeout: number;
  readonly logLevel: 'off';
  readonly fetch: typeof fetch;
}

/**
 * Gives the options for the client of a vendor's SDK, so that it does nothing but send: the key goes with each
 * request instead of this placeholder, which keeps the client from looking for one by itself; what goes wrong is sent
 * again, timed and told by Millrace.
 */
export const sdkOptions = (
  { baseUrl, headers }: Pick<Access, 'baseUrl' | 'headers'>,
  settings: Pick<VendorSettings, 'fetch' | 'caps'>,
): SdkOptions => ({
  baseURL: baseUrl,
  apiKey: 'none',
  defaultHeaders: headers,
  maxRetries: 0,
  // The longest that a timer can wait.
  timeout: 2 ** 31 - 1,
  logLevel: 'off',
  fetch: guardedFetch(settings),
});
