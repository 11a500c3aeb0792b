import { untrustedText } from './untrusted-text.js';

/** Anything that may count as a line end: control characters except tab, and Unicode line separators. */
const lineEnd = /\r\n|[^\P{Cc}\t]|[\p{Zl}\p{Zp}]/u;

/** Cleans text, and prefixes each line with `> `, so quoted text cannot pass for anything else. */
export const quoteLines = (text: string): string =>
  untrustedText(text.split(lineEnd).join('\n'), { labels: false })
    .split('\n')
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n');

const maxNameLength = 200;

/** Cleans a name and formats it on one line, up to 200 characters, without anything that looks like a passage number. */
export const quotedName = (name: string): string => {
  const cut =
    name.length <= maxNameLength ? name : `${withoutLoneSurrogate(name.slice(0, maxNameLength))}…`;
  return untrustedText(cut.replace(/[\s\p{Cc}]+/gu, ' '), { labels: false })
    .replace(/\[([\d, ]*)\]/gu, '($1)')
    .trim();
};

const withoutLoneSurrogate = (text: string): string => text.replace(/\p{Cs}$/u, '');
