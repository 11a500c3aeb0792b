/**
 * Tells whether a text within a value has one half of a pair of surrogates alone. JavaScript takes that for JSON; the
 * parsers of the vendors do not.
 */
export const hasHalfCharacter = (value: unknown): boolean => {
  if (typeof value === 'string') return half.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, item]) => half.test(key) || hasHalfCharacter(item));
};

/** To a regular expression for whole characters, a pair is none. */
const half = /\p{Surrogate}/u;
