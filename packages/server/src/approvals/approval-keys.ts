import { MillraceError } from 'millrace';

/** A random secret of at least 32 bytes that signs tokens. A string is encoded as UTF-8. */
export type ApprovalKey = string | Uint8Array;

/** The output length of SHA-256 (RFC 2104, section 3). */
const minBytes = 32;

/** Copies the keys, or throws a `config` error that does not reveal them. */
export const keysOf = (given: unknown): readonly Uint8Array<ArrayBuffer>[] => {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (given === undefined || list.length === 0) {
    throw configError("needs 'key', otherwise anyone could sign an approval");
  }
  return list.map(bytesOf);
};

const bytesOf = (key: unknown): Uint8Array<ArrayBuffer> => {
  if (typeof key !== 'string' && !(key instanceof Uint8Array)) {
    throw configError("'key' must be a string, a Uint8Array, or a list of them");
  }
  const bytes = typeof key === 'string' ? new TextEncoder().encode(key) : new Uint8Array(key);
  if (bytes.length < minBytes) {
    throw configError(`'key' must have at least ${minBytes} bytes, but one key is shorter`);
  }
  return bytes;
};

const configError = (problem: string): MillraceError =>
  new MillraceError(
    'config',
    `approvalQueue(): ${problem}. Create a key with crypto.getRandomValues(new Uint8Array(${minBytes})), and store it with your other secrets.`,
  );
