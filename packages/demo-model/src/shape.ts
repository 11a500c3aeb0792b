/** The outline of a text: `ORD-1234` and `AB-7` both give `A-9`. */
export const shapeOf = (text: string): string =>
  text
    .slice(0, 100)
    .replace(/\p{Lu}+/gu, 'A')
    .replace(/\p{Ll}+/gu, 'a')
    .replace(/\p{N}+/gu, '9');

/** Tells whether examples or a pattern have a form that ordinary words do not have. */
export const isTelling = (examples: readonly string[], pattern: RegExp | undefined): boolean =>
  (pattern !== undefined && ordinary.every((word) => !pattern.test(word))) ||
  (examples.length > 0 && examples.every(hasTellingShape));

/** Tells whether a text is formed unlike an ordinary word: a code such as `USD`, `A-17` or `a_b`. */
export const hasTellingShape = (text: string): boolean => {
  const shape = shapeOf(text);
  return /^\S+$/u.test(text) && !/^(?:A?a|9|a'a|A)$/u.test(shape)
    ? true
    : /^\p{Lu}{2,5}$/u.test(text);
};

const ordinary = ['hello', 'Paris', '42', 'a', 'I', 'three words here'];
