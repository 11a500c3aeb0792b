import { createHash } from 'node:crypto';
import { MillraceError } from '@millrace/core';

/**
 * What an id from outside is called in a store: a name of its own that is safe on all file systems, also those that do not tell `A` from `a`, and at most 140
 * characters long. Of lower-case letters, digits and `-` it keeps what they are; a long id is cut, with a hash of the whole.
 */
export const storedName = (id: string): string => {
  const name = `i-${id.slice(0, most).replace(/[^a-z0-9-]/g, escaped)}`;
  if (id.length <= most && name.length <= most) return name;
  const hash = createHash('sha256').update(id, 'utf16le').digest('hex');
  return `h-${hash}-${id.slice(0, 40).replace(/[^a-z0-9-]/g, '')}`;
};

const most = 100;

/** By code unit, as a lone half of a pair has no other name. */
const escaped = (unit: string): string => `_${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The id that a name was made of; nothing, where only a part of it is in the name. */
export const idIn = (name: string): string | undefined =>
  name.startsWith('i-')
    ? name
        .slice(2)
        .replace(/_([0-9a-f]{4})/g, (_, unit: string) =>
          String.fromCharCode(Number.parseInt(unit, 16)),
        )
    : undefined;

/** Refuses what is no id. */
export const checkId = (
  owner: string,
  id: unknown,
  code: 'config' | 'invalidRequest' = 'config',
): void => {
  if (typeof id === 'string' && id !== '' && id.length <= 16_384) return;
  throw new MillraceError(code, `${owner} needs an id: a text of 1 to 16,384 characters.`);
};
