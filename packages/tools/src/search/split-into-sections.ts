import type { SearchDocument, Section } from './document.js';

/** Longer sections are split at the next blank line. */
const maxLength = 1_500;

/** Splits a document at its Markdown headings (`#`, not in code blocks), and long sections at blank lines. */
export const splitIntoSections = (document: SearchDocument): readonly Section[] => {
  const sections: Section[] = [];
  let headings: readonly Heading[] = [];
  let lines: Line[] = [];
  let first = 1;
  let length = 0;
  let fence: string | undefined;

  const close = (next: number): void => {
    sections.push(...sectionOf(document, { headings, lines, first }));
    lines = [];
    length = 0;
    first = next;
  };
  for (const { text, number, from } of linesOf(document.text)) {
    fence = fenceAfter(fence, text);
    const heading = fence === undefined ? headingOf(text) : undefined;
    const isFull = length > maxLength && text.trim() === '' && fence === undefined;
    if (heading !== undefined || isFull || length > 4 * maxLength) close(number);
    if (heading !== undefined) {
      headings = [...headings.filter(({ level }) => level < heading.level), heading];
    } else {
      lines.push({ text, number, from, isCode: fence !== undefined });
      length += text.length + 1;
    }
  }
  close(0);
  return sections;
};

interface RawLine {
  readonly text: string;
  /** Starts at 1. */
  readonly number: number;
  readonly from: number;
}

interface Line extends RawLine {
  readonly isCode: boolean;
}

function* linesOf(text: string): Generator<RawLine> {
  let from = text.startsWith('\uFEFF') ? 1 : 0;
  let number = 1;
  for (const { 0: end, index } of text.matchAll(/\r?\n/gu)) {
    yield { text: text.slice(from, index), number, from };
    from = index + end.length;
    number += 1;
  }
  yield { text: text.slice(from), number, from };
}

interface Part {
  readonly headings: readonly Heading[];
  readonly lines: readonly Line[];
  readonly first: number;
}

const sectionOf = (
  { path, text }: SearchDocument,
  { headings, lines, first }: Part,
): readonly Section[] => {
  const begin = lines.find(isNotBlank);
  const end = lines.findLast(isNotBlank);
  if (begin === undefined || end === undefined) return [];
  const from = begin.from + begin.text.search(/\S/u);
  const to = end.from + end.text.trimEnd().length;
  const section = {
    path,
    headings: headings.map(({ title }) => title),
    text: joinLines(lines).trim(),
    code: joinLines(lines.filter(({ isCode }) => isCode)),
    prose: joinLines(lines.filter(({ isCode }) => !isCode)),
    line: first,
    original: text.slice(from, to),
    span: { from, to, line: begin.number },
  };
  return [section];
};

const isNotBlank = ({ text }: Line): boolean => text.trim() !== '';

const joinLines = (lines: readonly Line[]): string => lines.map(({ text }) => text).join('\n');

interface Heading {
  readonly level: number;
  readonly title: string;
}

const headingOf = (line: string): Heading | undefined => {
  const [, marks = '', title = ''] = /^ {0,3}(#{1,6})[ \t]+(.*)$/su.exec(line) ?? [];
  return marks === '' ? undefined : { level: marks.length, title: stripMarkdown(title) };
};

const stripMarkdown = (title: string): string =>
  title
    .replace(/\s+#+\s*$/u, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/gu, '$1')
    .replace(/[`*]/gu, '')
    .trim();

const fenceAfter = (open: string | undefined, line: string): string | undefined => {
  const marks = /^\s*(`{3,}|~{3,})/u.exec(line)?.[1];
  if (marks === undefined) return open;
  if (open === undefined) return marks;
  return marks.startsWith(open) && line.trim() === marks ? undefined : open;
};
