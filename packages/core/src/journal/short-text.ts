import { characterStart } from '../interceptors/surrogates.js';
import { isRecord } from '../json.js';

/** Characters of a text that is shown in a list. */
const maxLength = 200;

/** A text on one line, shortened where it is long. */
export const shortText = (text: string): string => {
  // Only so much is looked at: a text may be a whole book.
  const line = text
    .slice(0, 4 * maxLength)
    .replaceAll(/\s+/gu, ' ')
    .trim();
  return line.length > maxLength || text.length > 4 * maxLength
    ? `${line.slice(0, characterStart(line, maxLength - 1))}…`
    : line;
};

/** The text of content blocks, as far as it is that: what comes from a store may be anything. */
export const textIn = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .map((block: unknown) =>
          isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string'
            ? block['text']
            : '',
        )
        .join('')
    : '';
