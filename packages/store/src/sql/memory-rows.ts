import { createHash } from 'node:crypto';
import { isRecord, parsedJson, lookUpForm, termsIn } from 'millrace/values';
import type { MemoryEntry } from 'millrace/long-term-memory';
import type { Row } from './sql.js';
import { numberIn, textIn } from './text.js';

export const entryOf = (row: Row): MemoryEntry => {
  const userId = textIn(row, 'user_id');
  const metadata = parsedJson(textIn(row, 'metadata'));
  return Object.freeze({
    id: textIn(row, 'id'),
    text: textIn(row, 'text'),
    kind: textIn(row, 'kind'),
    scope: Object.freeze(
      row['session_id'] === null ? { userId } : { userId, sessionId: textIn(row, 'session_id') },
    ),
    createdAt: numberIn(row, 'created_at'),
    metadata: Object.freeze(isRecord(metadata) ? textsIn(metadata) : {}),
  });
};

const textsIn = (value: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)]));

/** A hash that is equal for texts that differ only in case, whitespace and Unicode form. */
export const essenceOf = (text: string): string => {
  const essence = text.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();
  return createHash('sha256').update(essence, 'utf16le').digest('hex');
};

/** The distinct words to index, up to 10,000. Skips words longer than 100 characters. */
export const wordsOf = (text: string): readonly string[] => {
  const forms = termsIn(text).flatMap((term) => lookUpForm(term) ?? []);
  return [...new Set(forms.filter((form) => form.length <= 100))].slice(0, 10_000);
};

/** A `tsquery` for texts with any of these words. */
export const anyOf = (words: readonly string[]): string =>
  words.map((word) => `'${word.replaceAll(/['\\]/g, '')}'`).join(' | ');
