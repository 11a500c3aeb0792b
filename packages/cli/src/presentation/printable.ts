/**
 * Removes what could control a terminal from untrusted text of models and tools: control characters except line feed
 * and tab, and marks that change the writing direction.
 */
export const printable = (text: string): string =>
  text.replaceAll(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '');

/** The same for a name, which takes one line. */
export const printableName = (name: string): string => printable(name).replaceAll(/\s+/gu, ' ');

/** The characters that JSON keeps as they are, but a terminal obeys. */
const raw = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/gu;

/** JSON with escapes in place of what could control a terminal. */
export const printableJson = (json: string): string =>
  json.replaceAll(raw, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);
