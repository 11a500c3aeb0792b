import { createHash } from 'node:crypto';

/** Characters that hide or reorder text, and lone surrogates. Joiners, which scripts need, stay. */
const unseen = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/gu;

/** Text of a server for models and people: no control or invisible characters, and a maximum length. */
export const cleaned = (text: string, maxLength: number): string => {
  const clean = text.slice(0, 2 * maxLength + 1_000).replace(unseen, '');
  if (clean.length <= maxLength) return clean;
  return `${clean.slice(0, maxLength).replace(/\p{Cs}$/u, '')}…`;
};

/** The name of a tool for the model: the prefix and the server's name, within the limits of all providers. */
export const safeName = (prefix: string, name: string): string => {
  const safe = `${prefix}${name}`.replace(/[^\w-]/g, '_');
  if (safe.length <= 64) return safe;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${safe.slice(0, 55)}_${digest}`;
};
