/** Creates the error for an unsupported pattern. */
export type Refuse = (why: string) => Error;

/** A character or a set such as `\d`, in the syntax of RE2 inside brackets. */
export interface Character {
  readonly text: string;
  /** Absent for a set. */
  readonly codePoint?: number;
}

/** Matches one escape, with the flags `isu`. */
export const escapeSource = String.raw`\\(?:u\{[\da-f]+\}|ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|x[\da-f]{2}|c[a-z]|p\{[^}]*\}|k<[^>]*>|\d+|.)`;

export const readCharacter = (token: string, isUnicode: boolean, refuse: Refuse): Character => {
  if (!token.startsWith('\\')) return ofText(token);
  const set = sets.get(token);
  if (set !== undefined) return { text: set };
  const control = controls.get(token);
  if (control !== undefined) return ofCodePoint(control);
  if (!isUnicode && /^\\(?:u\{|p\{)/iu.test(token)) {
    throw refuse(`it is only valid without the flag u, but ${token} is not an escape then`);
  }
  if (/^\\p\{/iu.test(token)) return { text: propertyOf(token) };
  const digits = /^\\[ux]\{?([\da-f]+)\}?$/iu.exec(token)?.[1];
  if (digits !== undefined) return ofCodePoint(parseInt(digits, 16));
  const [, high, low] = /^\\u([\da-f]{4})\\u([\da-f]{4})$/iu.exec(token) ?? [];
  if (high !== undefined && low !== undefined) {
    return ofText(String.fromCharCode(parseInt(high, 16), parseInt(low, 16)));
  }
  if (/^\\c[a-z]$/iu.test(token)) return ofCodePoint((token.codePointAt(2) ?? 0) % 32);
  if (/^\\[\dk]/u.test(token)) throw refuse('it uses a back-reference');
  // Without the flag u, these are literals, which is hardly ever intended.
  if (/^\\[a-z]/iu.test(token)) throw refuse(`${token} is not an escape of ECMAScript`);
  return ofText(token.slice(1));
};

/** The text of a character. Refuses lone surrogates, which the library would find inside surrogate pairs. */
export const textOf = ({ text, codePoint = 0 }: Character, refuse: Refuse): string => {
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) throw refuse('it contains a lone surrogate');
  return text;
};

const ofText = (text: string): Character => ofCodePoint(text.codePointAt(0) ?? 0);

const ofCodePoint = (codePoint: number): Character => ({
  text: String.raw`\x{${codePoint.toString(16)}}`,
  codePoint,
});

const sets: ReadonlyMap<string, string> = new Map([
  [String.raw`\d`, '0-9'],
  [String.raw`\D`, String.raw`\x{0}-\x{2f}\x{3a}-\x{10ffff}`],
  [String.raw`\w`, '0-9A-Z_a-z'],
  [String.raw`\W`, String.raw`\x{0}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{5e}\x{60}\x{7b}-\x{10ffff}`],
  [
    String.raw`\s`,
    String.raw`\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`,
  ],
  [
    String.raw`\S`,
    String.raw`\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`,
  ],
]);

const controls: ReadonlyMap<string, number> = new Map([
  [String.raw`\0`, 0],
  [String.raw`\t`, 9],
  [String.raw`\n`, 10],
  [String.raw`\v`, 11],
  [String.raw`\f`, 12],
  [String.raw`\r`, 13],
]);

/** RE2 only knows the short names of scripts and general categories. */
const propertyOf = (token: string): string => {
  const [kind, name = ''] = token.slice(0, -1).split('{');
  const short = name.replace(/^(?:General_Category|gc|Script|sc)=/u, '');
  return `${kind}{${shortNames.get(short) ?? short}}`;
};

const shortNames: ReadonlyMap<string, string> = new Map([
  ['Letter', 'L'],
  ['Lowercase_Letter', 'Ll'],
  ['Uppercase_Letter', 'Lu'],
  ['Mark', 'M'],
  ['Number', 'N'],
  ['Decimal_Number', 'Nd'],
  ['Punctuation', 'P'],
  ['Symbol', 'S'],
  ['Separator', 'Z'],
  ['Space_Separator', 'Zs'],
  ['Other', 'C'],
]);
