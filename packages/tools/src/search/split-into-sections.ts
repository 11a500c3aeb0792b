import { type MarkdownLine, markdownLines } from 'millrace/retrieval';
import type { SearchDocument, Section } from './document.js';

/** Longer sections are split at the next blank line. */
const maxLength = 1_500;

/** Splits a document at its Markdown headings (`#`, not in code blocks), and long sections at blank lines. */
export const splitIntoSections = (document: SearchDocument): readonly Section[] => {
  const sections: Section[] = [];
  let headings: readonly Heading[] = [];
  let lines: Line[] = [];
  let [number, first] = [0, 1];
  let length = 0;

  const close = (next: number): void => {
    sections.push(...sectionOf(document, { headings, lines, first }));
    lines = [];
    length = 0;
    first = next;
  };
  for (const { from, to, isCode, heading } of markdownLines(document.text)) {
    number += 1;
    const text = document.text.slice(from, to).replace(/\r?\n$/u, '');
    const isFull = length > maxLength && text.trim() === '' && !isCode;
    if (heading !== undefined || isFull || length > 4 * maxLength) close(number);
    if (heading !== undefined) {
      headings = [...headings.filter(({ level }) => level < heading.level), heading];
    } else {
      lines.push({ text, number, from, isCode });
      length += text.length + 1;
    }
  }
  close(0);
  return sections;
};

type Heading = NonNullable<MarkdownLine['heading']>;

interface Line {
  readonly text: string;
  /** Starts at 1. */
  readonly number: number;
  readonly from: number;
  readonly isCode: boolean;
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
