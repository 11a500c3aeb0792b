/** One JSON escape, or a surrogate pair. */
const escapes = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|.)/giu;
const surrogate = /\\ud[89a-f]/iu;
const loneSurrogate = /^\\ud[89a-f][\da-f]{2}$/iu;

/**
 * Replaces lone surrogates in JSON with U+FFFD. A truncated string may end in one, and vendors reject such a request
 * and all later ones, because it stays in the conversation.
 */
export const wellFormed = (json: string): string =>
  surrogate.test(json)
    ? json.replace(escapes, (escape) => (loneSurrogate.test(escape) ? '\\ufffd' : escape))
    : json;
