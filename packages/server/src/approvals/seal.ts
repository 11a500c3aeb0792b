import { parsedJson } from '@millrace/core/adapter';
import { fromBase64url, toBase64url } from './base64url.js';
import { type Claims, isClaims } from './claims.js';

/** Signs claims, and knows those that it has signed. */
export interface Seal {
  /** Writes `base64url(claims).base64url(HMAC-SHA256 of the first half)`. */
  sealed(claims: Claims): Promise<string>;
  /** What a token says, where one of the keys has signed it. */
  opened(token: string): Promise<Claims | undefined>;
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' } as const;

/** Makes a seal. The first key signs, all of them verify; they are imported once, when they are needed first. */
export const createSeal = (keys: readonly Uint8Array<ArrayBuffer>[]): Seal => {
  const imported = once(() =>
    Promise.all(
      keys.map((key) => subtle().importKey('raw', key, algorithm, false, ['sign', 'verify'])),
    ),
  );
  return {
    sealed: async (claims) => {
      const body = toBase64url(encoder.encode(JSON.stringify(claims)));
      const [key] = await imported();
      const mac = key === undefined ? undefined : await subtle().sign('HMAC', key, bytesOf(body));
      return `${body}.${toBase64url(new Uint8Array(mac ?? []))}`;
    },
    opened: async (token) => {
      const [body = '', signature = '', ...more] = token.split('.', 3);
      const mac = fromBase64url(signature);
      if (mac === undefined || more.length > 0) return undefined;
      const signed = bytesOf(body);
      // `verify` compares in constant time, and every key is asked.
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
