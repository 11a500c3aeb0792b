/** Anything that may count as a line end: control characters except tab, and Unicode line separators. */
const lineEnd = /\r\n|[^\P{Cc}\t]|[\p{Zl}\p{Zp}]/u;

/** Prefixes each line with `> `, so quoted text cannot pass for anything else. */
export const quoteLines = (text: string): string =>
  text
    .split(lineEnd)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');

const maxNameLength = 200;

/** Formats a name on one line, up to 200 characters, without anything that looks like a passage number. */
export const nameOf = (name: string): string => {
  const cut =
    name.length <= maxNameLength ? name : `${withoutLoneSurrogate(name.slice(0, maxNameLength))}…`;
  return cut
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/\[([\d, ]*)\]/gu, '($1)')
    .trim();
};

const withoutLoneSurrogate = (text: string): string => text.replace(/\p{Cs}$/u, '');
