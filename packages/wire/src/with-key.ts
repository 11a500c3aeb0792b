import type { Access, Credentials } from './access.js';
import type { Exchange } from './exchange.js';

/** The abort signal and the key for a request. */
export interface SendOptions {
  readonly signal: AbortSignal;
  readonly headers: Credentials['headers'];
}

/** Returns the part of an exchange that handles the key: it is resolved when the request is sent, and redacted. */
export const withKey = (
  { credentials, secrets: known }: Pick<Access, 'credentials' | 'secrets'>,
  send: (init: SendOptions) => PromiseLike<Response>,
): Pick<Exchange, 'secrets' | 'send'> => {
  const secrets = [...known];
  return {
    secrets,
    send: async (signal) => {
      const { headers, secret } = await credentials();
      if (!secrets.includes(secret)) secrets.push(secret);
      return send({ signal, headers });
    },
  };
};
