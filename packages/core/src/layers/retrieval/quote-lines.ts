/** Whatever somebody may take for the end of a line: every control character but the tab, and Unicode's separators. */
const lineEnd = /\r\n|[^\P{Cc}\t]|[\p{Zl}\p{Zp}]/u;

/** Writes a text so that each of its lines stands behind `> `, whatever ends it: nothing in it can pass for what is not quoted. */
export const quoted = (text: string): string =>
  text
    .split(lineEnd)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');

const longestName = 200;

/** Writes a name on one line, 200 characters at most, in which nothing looks like the number of a passage. */
export const nameOf = (name: string): string => {
  const cut = name.length <= longestName ? name : `${withoutHalf(name.slice(0, longestName))}…`;
  return cut
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/\[([\d, ]*)\]/gu, '($1)')
    .trim();
};

/** Without the half of a character that a cut has left at the end. */
const withoutHalf = (text: string): string => text.replace(/\p{Cs}$/u, '');
