import { MillraceError } from '@millrace/core';

/** What tokens are signed with: at least 32 bytes that nobody can guess. Of a text, those of its UTF-8 count. */
export type ApprovalKey = string | Uint8Array;

/** The shortest key, in bytes: as long as a hash of SHA-256 (RFC 2104, section 3). */
const shortest = 32;

/** Copies the keys, or throws a `config` error. It says nothing of what was given. */
export const keysOf = (given: unknown): readonly Uint8Array<ArrayBuffer>[] => {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (given === undefined || list.length === 0) {
    throw refused("needs 'key': without one anybody could sign an approval");
  }
  return list.map(bytesOf);
};

const bytesOf = (key: unknown): Uint8Array<ArrayBuffer> => {
  if (typeof key !== 'string' && !(key instanceof Uint8Array)) {
    throw refused("'key' must be a text, a Uint8Array, or a list of them");
  }
  const bytes = typeof key === 'string' ? new TextEncoder().encode(key) : new Uint8Array(key);
  if (bytes.length < shortest) {
    throw refused(`'key' must have at least ${shortest} bytes, and one of them has fewer`);
  }
  return bytes;
};

const refused = (what: string): MillraceError =>
  new MillraceError(
    'config',
    `approvalDesk(): ${what}. Make one with crypto.getRandomValues(new Uint8Array(${shortest})), and keep it where secrets are.`,
  );
