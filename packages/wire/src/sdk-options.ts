import type { Access } from './access.js';
import { guardedFetch } from './guarded-fetch.js';
import type { VendorSettings } from './settings.js';

/** Options that the clients of vendors' SDKs have in common. */
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
 * Returns client options that reduce an SDK to sending requests. The key is a placeholder, which stops the client from
 * reading one from the environment: each request brings its own. Millrace handles retries, timeouts and logs.
 */
export const sdkOptions = (
  { baseUrl, headers }: Pick<Access, 'baseUrl' | 'headers'>,
  settings: Pick<VendorSettings, 'fetch' | 'caps'>,
): SdkOptions => ({
  baseURL: baseUrl,
  apiKey: 'none',
  defaultHeaders: headers,
  maxRetries: 0,
  // The maximum delay of a timer.
  timeout: 2 ** 31 - 1,
  logLevel: 'off',
  fetch: guardedFetch(settings),
});
