/**
 * Rewrites a text as it is read: characters of compatibility become plain ones (NFKC), those that nobody sees are gone, marks
 * that are laid over letters too, and of white space one space is left, or one line break where there was any. In linear time.
 */
export const cleaned = (text: string): string =>
  withoutMarks(text.replace(invisible, '').replace(longMarks, '$1').normalize('NFKC')).replace(
    /[\s\u2800]+/g,
    (space) => (lineBreak.test(space) ? '\n' : ' '),
  );

export const folded = (text: string): string =>
  withoutMarks(cleaned(text).toUpperCase().toLowerCase()).replaceAll('\n', ' ');

/** Marks that were not melted with their letters. */
export const withoutMarks = (text: string): string =>
  text.replace(/[\u0300-\u036f\u20d0-\u20ff]+/g, '');

/** What is there and cannot be seen: joiners, fillers, soft hyphens, directions, tags, controls. */
const invisible = /(?:[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]|(?![\s\u0085])\p{Cc})+/gu;

/** A normaliser sorts marks: a long row of them would take it quadratic time. */
const longMarks = /(\p{M}{16})\p{M}+/gu;

const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;
