/**
 * Takes out of a text whatever would steer a terminal: control characters but for line feed and tab, and
 * marks that turn the direction of writing. What a model or a tool says is foreign text.
 */
export const printable = (text: string): string =>
  text.replaceAll(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, '');
