/** One escape of JSON; a pair of surrogates is one. */
const escapes = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|.)/giu;
const surrogate = /\\ud[89a-f]/iu;
const loneSurrogate = /^\\ud[89a-f][\da-f]{2}$/iu;

/**
 * Puts U+FFFD in place of each half of a character in a JSON text, as cutting a text may leave one: vendors refuse
 * the request, and each one behind it, since it stays in the conversation.
 */
export const wellFormed = (json: string): string =>
  surrogate.test(json)
    ? json.replace(escapes, (escape) => (loneSurrogate.test(escape) ? '\\ufffd' : escape))
    : json;
