import { checkOptions, type Rule, wholeNumber } from '../../values/options.js';
import { misuse } from '../../values/errors.js';

/** A document before it is split. */
export interface TextDocument {
  /** The path or URL to cite. */
  readonly source: string;
  readonly text: string;
  /** Its title, if it has one besides its headings. */
  readonly title?: string;
  /** The offset in the text at which each page starts. Chunks cite the page: `manual.pdf#page=3`. */
  readonly pages?: readonly number[];
}

/** A part of a document: `text.slice(from, to)`. */
export interface Chunk {
  readonly from: number;
  readonly to: number;
  /** Line number of the start, counted from 1. */
  readonly line?: number;
  /** The headings above it. */
  readonly title?: string;
  /** The source to cite, if it is not that of the document. */
  readonly source?: string;
}

/** A document with its chunks, for an index. */
export interface ChunkedDocument extends TextDocument {
  readonly chunks: readonly Chunk[];
}

/** Splits a document. Chunks may overlap, and parts of the document may be in no chunk. */
export type Chunker = (document: TextDocument) => readonly Pick<Chunk, 'from' | 'to' | 'title'>[];

/**
 * Splits a document, by headings unless another chunker is given, and adds the line and the page of each chunk. Throws a
 * `MillraceError` (`config`) if a span of the chunker is not within the text.
 */
export const chunked = (
  document: TextDocument,
  chunker: Chunker = byHeadings(),
): ChunkedDocument => {
  const spans = chunker(document);
  for (const { from, to } of spans) {
    const isWithin = from >= 0 && from < to && to <= document.text.length;
    if (isWithin && Number.isSafeInteger(from) && Number.isSafeInteger(to)) continue;
    throw misuse(
      `The chunker returned a span from ${from} to ${to} of '${document.source.slice(0, 200)}', which has ${document.text.length} characters.`,
    );
  }
  return { ...document, chunks: located(document, spans) };
};

const located = (
  { source, text, pages = [] }: TextDocument,
  spans: ReturnType<Chunker>,
): readonly Chunk[] => {
  let line = 1;
  let next = text.indexOf('\n');
  let page = 0;
  // In the order of their start, each line is counted once.
  const sorted = [...spans.entries()].sort(([, a], [, b]) => a.from - b.from);
  const chunks: Chunk[] = [];
  for (const [position, span] of sorted) {
    while (next !== -1 && next < span.from) {
      line += 1;
      next = text.indexOf('\n', next + 1);
    }
    while ((pages[page] ?? Infinity) <= span.from) page += 1;
    const { from, to, title = '' } = span;
    chunks[position] = {
      ...{ from, to, line },
      ...(title === '' ? {} : { title }),
      ...(page > 0 ? { source: `${source}#page=${page}` } : {}),
    };
  }
  return chunks;
};

// ---------------------------------------------------------------- by headings

/**
 * Splits at Markdown headings (`#`, not in code blocks) and at pages. A longer section is split at a blank line, else at
 * the end of a line or word. The headings are the title of a chunk, and not part of its text.
 */
export const byHeadings = (options: { readonly maxLength?: number | undefined } = {}): Chunker => {
  checkOptions('byHeadings()', options, { maxLength: length });
  const { maxLength = 2_000 } = options;
  return ({ text, title, pages }) =>
    sectionsOf(text, title, pages).flatMap((section) =>
      piecesOf(text, section, { maxLength, overlap: 0 }),
    );
};

interface Section {
  readonly from: number;
  readonly to: number;
  readonly title: string;
}

const sectionsOf = (
  text: string,
  title: string | undefined,
  pages: readonly number[] = [],
): readonly Section[] => {
  const sections: Section[] = [];
  let headings: readonly Heading[] = [];
  let from = 0;
  let page = 0;
  const close = (to: number): void => {
    const titles = headings.map((heading) => heading.title);
    const all = title === undefined || titles[0] === title ? titles : [title, ...titles];
    if (to > from) sections.push({ from, to, title: all.filter(Boolean).join(' › ') });
  };
  for (const line of markdownLines(text)) {
    const { heading } = line;
    const isPage = (pages[page] ?? Infinity) <= line.from;
    while ((pages[page] ?? Infinity) <= line.from) page += 1;
    if (heading === undefined && !isPage) continue;
    close(line.from);
    from = heading === undefined ? line.from : line.to;
    if (heading === undefined) continue;
    headings = [...headings.filter(({ level }) => level < heading.level), heading];
  }
  close(text.length);
  return sections;
};

interface Heading {
  /** From 1 to 6. */
  readonly level: number;
  /** Without marks. */
  readonly title: string;
}

/** A line of Markdown: `text.slice(from, to)`, with its end. */
export interface MarkdownLine {
  readonly from: number;
  readonly to: number;
  /** Whether a code block is open after it. */
  readonly isCode: boolean;
  /** Set if it is a heading (`#`) outside of code blocks. */
  readonly heading?: Heading;
}

/** The lines of a Markdown text, without its byte order mark, with their headings. */
export function* markdownLines(text: string): Generator<MarkdownLine> {
  let from = text.startsWith('\uFEFF') ? 1 : 0;
  let fence: string | undefined;
  while (from < text.length) {
    const end = text.indexOf('\n', from);
    const to = end === -1 ? text.length : end + 1;
    // No heading or fence needs more.
    const start = text.slice(from, Math.min(to, from + 300)).trimEnd();
    fence = fenceAfter(fence, start);
    const isCode = fence !== undefined;
    const heading = isCode ? undefined : headingOf(start);
    yield { from, to, isCode, ...(heading && { heading }) };
    from = to;
  }
}

const headingOf = (line: string): Heading | undefined => {
  const [, marks = '', title = ''] = /^ {0,3}(#{1,6})[ \t]+(.*)$/su.exec(line) ?? [];
  return marks === '' ? undefined : { level: marks.length, title: stripMarkdown(title) };
};

const stripMarkdown = (title: string): string =>
  title
    .replace(/[ \t]#+$/u, '')
    .replace(/\[([^\][]*)\]\([^()]*\)/gu, '$1')
    .replace(/[`*]/gu, '')
    .trim();

const fenceAfter = (open: string | undefined, line: string): string | undefined => {
  const marks = /^\s*(`{3,}|~{3,})/u.exec(line)?.[1];
  if (marks === undefined) return open;
  // Not a fence: code in a line, as in ```npm install```.
  if (open === undefined) return /^\s*`+[^`]+`/u.test(line) ? undefined : marks;
  return marks.startsWith(open) && line.trim() === marks ? undefined : open;
};

// ---------------------------------------------------------------- by size

/**
 * Splits into chunks of up to `maxLength` characters (1,500). Each repeats the last `overlap` characters (200) of the one
 * before. Each page is split by itself.
 */
export const bySize = (
  options: { readonly maxLength?: number | undefined; readonly overlap?: number | undefined } = {},
): Chunker => {
  checkOptions('bySize()', options, { maxLength: length, overlap: wholeNumber(0) });
  const { maxLength = 1_500, overlap = 200 } = options;
  if (overlap > maxLength / 2) {
    throw misuse(`bySize(): 'overlap' must be up to half of 'maxLength'.`);
  }
  return ({ text, title = '', pages = [] }) => {
    const starts = [...new Set([0, ...pages])];
    return starts.flatMap((from, at) =>
      piecesOf(text, { from, to: starts[at + 1] ?? text.length, title }, { maxLength, overlap }),
    );
  };
};

const length: Rule = wholeNumber(100);

interface PieceOptions {
  readonly maxLength: number;
  readonly overlap: number;
}

/** Pieces of a section without white space around them, and no blank ones. */
const piecesOf = (
  text: string,
  { from: first, to: end, title }: Section,
  { maxLength, overlap }: PieceOptions,
): readonly Section[] => {
  const pieces: Section[] = [];
  let from = first;
  while (from < end) {
    const window = text.slice(from, Math.min(end, from + maxLength));
    const isLast = from + window.length >= end;
    const cut = isLast ? window : window.slice(0, cutOf(window));
    const lead = cut.length - cut.trimStart().length;
    const kept = cut.trim();
    if (kept !== '') pieces.push({ from: from + lead, to: from + lead + kept.length, title });
    if (isLast) break;
    from += Math.max(1, cut.length - (kept === '' ? 0 : overlapOf(cut, overlap)));
  }
  return pieces;
};

/** After a paragraph, a line or a word in the second half of the window, else before a character that does not fit. */
const cutOf = (window: string): number => {
  const half = window.length / 2;
  for (const end of ['\n\n', '\n', ' ']) {
    const at = window.lastIndexOf(end);
    if (at > half) return at + end.length;
  }
  return window.length - (/[\ud800-\udbff]$/.test(window) ? 1 : 0);
};

/** The number of characters to repeat, from the start of a word if possible. */
const overlapOf = (cut: string, overlap: number): number => {
  if (overlap === 0) return 0;
  const repeated = cut.slice(-overlap);
  const word = repeated.search(/\s\S/u);
  const start = word === -1 || word > overlap / 2 ? 0 : word + 1;
  const isHalf = start === 0 && /^[\udc00-\udfff]/.test(repeated);
  return repeated.length - start - (isHalf ? 1 : 0);
};
