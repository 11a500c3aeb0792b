import { escapeSource, readCharacter, type Refuse, textOf } from './character.js';

/** Translates a character class, such as `[^\w.-]`, to the syntax of RE2. */
export const characterClass = (token: string, isUnicode: boolean, refuse: Refuse): string => {
  const negated = token.startsWith('[^');
  const members = Array.from(
    token.slice(negated ? 2 : 1, -1).matchAll(member),
    ([, first = '', last]) => membersOf(first, last, isUnicode, refuse),
  );
  if (members.length === 0) return negated ? everything : nothing;
  return `[${negated ? '^' : ''}${members.join('')}]`;
};

const everything = String.raw`[\x{0}-\x{10ffff}]`;
const nothing = String.raw`[^\x{0}-\x{10ffff}]`;

/** A character or set, or the first and last character of a range. */
const member = new RegExp(String.raw`(${escapeSource}|[^\\])(?:-(${escapeSource}|[^\\]))?`, 'gisu');

const membersOf = (
  first: string,
  last: string | undefined,
  isUnicode: boolean,
  refuse: Refuse,
): string => {
  const read = (token: string) =>
    readCharacter(token === String.raw`\b` ? String.raw`\x08` : token, isUnicode, refuse);
  const from = read(first);
  if (last === undefined) return textOf(from, refuse);
  const to = read(last);
  const isRange = from.codePoint !== undefined && to.codePoint !== undefined;
  if (isRange && from.codePoint < to.codePoint) return `${from.text}-${to.text}`;
  // Next to a set, the hyphen is literal.
  return [from, ...(isRange ? [] : [read('-')]), to].map((it) => textOf(it, refuse)).join('');
};
