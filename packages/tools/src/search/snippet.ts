import { excerptOf } from './excerpt.js';

/** Returns the part of `text` with the most different terms, about 600 characters long. */
export const snippetOf = (text: string, terms: ReadonlySet<string>): string => {
  const { from, to } = excerptOf(text, terms, maxLength);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
};

const maxLength = 600;
