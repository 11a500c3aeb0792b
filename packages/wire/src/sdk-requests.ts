import type { Access, Credentials } from './access.js';
import type { Exchange, WireRequest } from './exchange.js';
import type { SdkClient, SdkOptions, Target } from './sdk-target.js';

/** Returns the part of an exchange that sends a serialized body. */
export type SdkRequests = (body: string) => Pick<Exchange, 'secrets' | 'request'>;

/**
 * Builds requests with a vendor's SDK. `load` creates its client with the first request. The SDK builds the URL and
 * the headers once, because they do not change; each request adds its key. The client has a placeholder key, which
 * stops it from reading one from the environment. Millrace handles retries, timeouts and logs. Requests error with
 * `config` if the SDK refuses to run in a browser.
 */
export const sdkRequests = (
  access: Access,
  path: string,
  load: (options: SdkOptions) => Promise<SdkClient>,
): SdkRequests => {
  const { credentials, secrets: known } = access;
  let target: Target | undefined;
  let loading: Promise<Target> | undefined;
  const loadFirst = async (): Promise<Target> => {
    const { loadTarget } = await import('./sdk-target.js');
    const found = await loadTarget(access, path, load);
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
        target ?? (await (loading ??= loadFirst().finally(() => (loading = undefined))));
      return { ...withKey(found, key), body };
    };
    return { secrets, request };
  };
};

const withKey = ({ url, headers }: Target, { headers: added }: Credentials): Target => ({
  url,
  headers: { ...headers, ...added },
});
