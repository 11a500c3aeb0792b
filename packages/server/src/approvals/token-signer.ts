import { parsedJson } from 'millrace/values';
import { fromBase64url, toBase64url } from './base64url.js';
import { type Claims, isClaims } from './claims.js';

export interface TokenSigner {
  /** Resolves to `base64url(claims).base64url(HMAC-SHA256 of the first half)`. */
  sign(claims: Claims): Promise<string>;
  /** Resolves to the claims of a token; undefined if no key has signed it. */
  verify(token: string): Promise<Claims | undefined>;
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' } as const;

/** The first key signs, all keys verify. Imports the keys once, on first use. */
export const createTokenSigner = (keys: readonly Uint8Array<ArrayBuffer>[]): TokenSigner => {
  const imported = once(() =>
    Promise.all(
      keys.map((key) => subtle().importKey('raw', key, algorithm, false, ['sign', 'verify'])),
    ),
  );
  return {
    sign: async (claims) => {
      const body = toBase64url(encoder.encode(JSON.stringify(claims)));
      const [key] = await imported();
      const mac = key === undefined ? undefined : await subtle().sign('HMAC', key, bytesOf(body));
      return `${body}.${toBase64url(new Uint8Array(mac ?? []))}`;
    },
    verify: async (token) => {
      const [body = '', signature = '', ...more] = token.split('.', 3);
      const mac = fromBase64url(signature);
      if (mac === undefined || more.length > 0) return undefined;
      const signed = bytesOf(body);
      // Takes constant time: `verify` does, and every key is tried.
      const verdicts = (await imported()).map((key) => subtle().verify('HMAC', key, mac, signed));
      return (await Promise.all(verdicts)).includes(true) ? claimsIn(body) : undefined;
    },
  };
};

const encoder = new TextEncoder();
const bytesOf = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);
const subtle = () => globalThis.crypto.subtle;

const claimsIn = (body: string): Claims | undefined => {
  const claims = parsedJson(new TextDecoder().decode(fromBase64url(body)));
  return isClaims(claims) ? claims : undefined;
};

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};
