const simple: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

export const isWholeEscape = (escape: string): boolean =>
  escape.startsWith('\\u') ? escape.length === 6 : escape.length === 2;

export const decodedEscape = (escape: string): string | undefined => {
  const name = escape.slice(1);
  if (/^u[\da-f]{4}$/i.test(name)) return String.fromCharCode(Number.parseInt(name.slice(1), 16));
  return Object.hasOwn(simple, name) ? simple[name] : undefined;
};

/**
 * Tells whether JSON has an escape that a path or a pattern may have been meant with: a form feed or a backspace before a word, or a line
 * that breaks behind the letter of a drive.
 */
export const hasDoubtfulEscape = (json: string): boolean =>
  /(?<!\\)(?:\\\\)*\\[bf](?=\w)|(?<![A-Za-z\d])[C-PR-Z]:\\[nrt][A-Za-z]/.test(json);

/** Tells whether a text has a backslash that begins no escape: it may belong to a path or a pattern. Before an apostrophe it means that. */
export const hasOddBackslash = (json: string): boolean =>
  json.replaceAll(/\\(?:u[\da-f]{4}|["'\\/bfnrt])/gi, '').includes('\\');
