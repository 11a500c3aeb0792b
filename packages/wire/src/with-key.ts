import type { Access, Credentials } from './access.js';
import type { Exchange } from './exchange.js';

/** What goes with a request beside its body. */
export interface SendOptions {
  readonly signal: AbortSignal;
  /** The key. */
  readonly headers: Credentials['headers'];
}

/** Makes the part of an exchange that knows the key: it is asked for when the request is sent, and shown nowhere. */
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
