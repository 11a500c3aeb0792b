/**
 * Removes what could control a terminal from untrusted text of models and tools: control characters except line feed
 * and tab, and marks that change the writing direction.
 */
export const printable = (text: string): string =>
  text.replaceAll(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '');
