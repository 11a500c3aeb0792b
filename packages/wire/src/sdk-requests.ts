import type { Access, Credentials } from './access.js';
import type { Exchange, WireRequest } from './exchange.js';
import type { SdkClient, SdkOptions, Target } from './sdk-target.js';

/** Returns the part of an exchange that sends a serialized body. */
export type SdkRequests = (body: string) => Pick<Exchange, 'secrets' | 'request'>;

/**
 * Builds requests with a vendor's SDK. `load` creates its client. It is called immediately, because loading an SDK takes
 * longer than a program takes to start. If it fails, the next request calls it again, and errors with `config` if that
 * fails too, for example because the SDK refuses to run in a browser. The SDK builds the URL and the headers once, because
 * they do not change; each request adds its key. The client has a placeholder key, which stops it from reading one from
 * the environment. Millrace handles retries, timeouts and logs.
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
  const loadOnce = (): Promise<Target> =>
    (loading ??= loadFirst().finally(() => (loading = undefined)));
  loadOnce().catch(() => undefined);
  return (body) => {
    const ready = target;
    if (ready !== undefined && typeof credentials !== 'function') {
      return { secrets: known, request: () => ({ body, ...ready }) };
    }
    const secrets = [...known];
    const request = async (): Promise<WireRequest> => {
      const key = typeof credentials === 'function' ? await credentials() : credentials;
      if (!secrets.includes(key.secret)) secrets.push(key.secret);
      return { ...withKey(target ?? (await loadOnce()), key), body };
    };
    return { secrets, request };
  };
};

const withKey = ({ url, headers }: Target, { headers: added }: Credentials): Target => ({
  url,
  headers: { ...headers, ...added },
});
