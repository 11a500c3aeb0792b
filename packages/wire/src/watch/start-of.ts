import { createUtf8 } from '../utf8.js';

/** The characters of a body that are kept. */
const most = 1_000_000;

/** Longer than any secret: what is read past the characters that are kept, so that a secret at the cut is found whole. */
const margin = 32_768;

/** The characters of a body that are read. */
export const mostRead = most + margin;

/** A body, as far as it is known. */
interface Known {
  /** All of it, or at least its first `mostRead` characters. */
  readonly text: string;
  readonly length: number;
  /** Whether it arrived to its end. */
  readonly isWhole: boolean;
}

/** A string without secrets, and the number of omitted characters. */
export interface Cleaned {
  readonly text: string;
  readonly omitted: number;
}

/** The start of a body without secrets, and how many characters are left out. It holds no more of the text in memory. */
export const startOf = (
  { text, length, isWhole }: Known,
  clean: (text: string) => Cleaned,
): { readonly body: string; readonly omitted: number } => {
  const read = text.slice(0, mostRead);
  const { text: cleaned, omitted: removed } = clean(read);
  const end = length > read.length ? cleaned.length - margin : isWhole ? most : lastWord(cleaned);
  const body = cleaned.slice(0, Math.min(most, Math.max(0, end)));
  const omitted = length - read.length + removed + cleaned.length - body.length;
  return { body: omitted === 0 ? body : copyOf(body), omitted };
};

/** The start of the last word, which may be a part of a secret: nothing would find it. */
export const lastWord = (text: string): number => {
  const from = Math.max(0, text.length - margin);
  const at = text
    .slice(from)
    .search(/(?<![\w!#$%&*+./;<=>?@\\^`|~-])[\w!#$%&*+./;<=>?@\\^`|~-]+$/u);
  return at === -1 ? text.length : from + at;
};

const encoder = new TextEncoder();

/** A string of its own: a slice holds the string that it is of. */
const copyOf = (text: string): string => createUtf8().push(encoder.encode(text));
