import { createHash } from 'node:crypto';
import { MillraceError } from 'millrace';

/**
 * Encodes an untrusted id as a unique name of up to 140 characters that is safe on every file system, even a
 * case-insensitive one. Keeps lower-case letters, digits and `-`, escapes the rest, truncates and hashes a long id.
 */
export const storedName = (id: string): string => {
  const name = `i-${id.slice(0, maxLength).replace(/[^a-z0-9-]/g, escaped)}`;
  if (id.length <= maxLength && name.length <= maxLength) return name;
  const hash = createHash('sha256').update(id, 'utf16le').digest('hex');
  return `h-${hash}-${id.slice(0, 40).replace(/[^a-z0-9-]/g, '')}`;
};

const maxLength = 100;

/** By UTF-16 code unit, as an id may contain lone surrogates. */
const escaped = (unit: string): string => `_${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Decodes the id; undefined if the name holds only a part of it. */
export const parseStoredName = (name: string): string | undefined =>
  name.startsWith('i-')
    ? name
        .slice(2)
        .replace(/_([0-9a-f]{4})/g, (_, unit: string) =>
          String.fromCharCode(Number.parseInt(unit, 16)),
        )
    : undefined;

/** Throws if the value cannot be an id. */
export const checkId = (
  owner: string,
  id: unknown,
  code: 'config' | 'invalidRequest' = 'config',
  what = 'an id',
): void => {
  if (typeof id === 'string' && id !== '' && id.length <= 16_384) return;
  throw new MillraceError(code, `${owner} needs ${what}: a string of 1 to 16,384 characters.`);
};

/** The name of a session in a store of states. */
export const sessionKey = (sessionId: string): string => {
  checkId('A session', sessionId, 'invalidRequest');
  return storedName(sessionId);
};
