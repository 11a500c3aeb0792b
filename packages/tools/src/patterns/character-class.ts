import { anEscape, readCharacter, type Refuse, textOf } from './character.js';

/** Writes a class, such as `[^\w.-]`, in the syntax of RE2. */
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

/** A character or a set, or the first and the last of a range. */
const member = new RegExp(String.raw`(${anEscape}|[^\\])(?:-(${anEscape}|[^\\]))?`, 'gisu');

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
  // Beside a set the hyphen stands for itself.
  return [from, ...(isRange ? [] : [read('-')]), to].map((it) => textOf(it, refuse)).join('');
};
