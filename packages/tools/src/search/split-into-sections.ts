import type { SearchDocument, Section } from './document.js';

/** A section that is longer is cut at the next blank line. */
const longestSection = 1_500;

/** Splits a document at its Markdown headings (`#`, not in code blocks), and at blank lines where it is long. */
export const splitIntoSections = ({ path, text }: SearchDocument): readonly Section[] => {
  const sections: Section[] = [];
  let headings: readonly Heading[] = [];
  let lines: Line[] = [];
  let first = 1;
  let length = 0;
  let fence: string | undefined;

  const close = (next: number): void => {
    const titles = headings.map(({ title }) => title);
    const body = joined(lines).trim();
    const code = joined(lines.filter(({ isCode }) => isCode));
    const prose = joined(lines.filter(({ isCode }) => !isCode));
    if (body !== '')
      sections.push({ path, headings: titles, text: body, code, prose, line: first });
    lines = [];
    length = 0;
    first = next;
  };
  for (const [index, line] of text
    .replace(/^\uFEFF/u, '')
    .split(/\r?\n/u)
    .entries()) {
    fence = fenceAfter(fence, line);
    const heading = fence === undefined ? headingOf(line) : undefined;
    const isFull = length > longestSection && line.trim() === '' && fence === undefined;
    if (heading !== undefined || isFull || length > 4 * longestSection) close(index + 1);
    if (heading !== undefined) {
      headings = [...headings.filter(({ level }) => level < heading.level), heading];
    } else {
      lines.push({ text: line, isCode: fence !== undefined });
      length += line.length + 1;
    }
  }
  close(0);
  return sections;
};

interface Line {
  readonly text: string;
  readonly isCode: boolean;
}

const joined = (lines: readonly Line[]): string => lines.map(({ text }) => text).join('\n');

interface Heading {
  readonly level: number;
  readonly title: string;
}

const headingOf = (line: string): Heading | undefined => {
  const [, marks = '', title = ''] = /^ {0,3}(#{1,6})[ \t]+(.*)$/u.exec(line) ?? [];
  return marks === '' ? undefined : { level: marks.length, title: plain(title) };
};

const plain = (title: string): string =>
  title
    .replace(/\s+#+\s*$/u, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/gu, '$1')
    .replace(/[`*]/gu, '')
    .trim();

/** The marks of the code block that is open behind a line. */
const fenceAfter = (open: string | undefined, line: string): string | undefined => {
  const marks = /^\s*(`{3,}|~{3,})/u.exec(line)?.[1];
  if (marks === undefined) return open;
  if (open === undefined) return marks;
  return marks.startsWith(open) && line.trim() === marks ? undefined : open;
};
