import { excerptOf } from './excerpt.js';

/** Cuts the part of a text that holds the most of some terms, at most some 600 characters, at ends of lines or words. */
export const snippetOf = (text: string, terms: ReadonlySet<string>): string => {
  const { from, to } = excerptOf(text, terms, longest);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
};

const longest = 600;
