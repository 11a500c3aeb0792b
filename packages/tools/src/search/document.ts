import type { Span } from 'millrace/retrieval';

/** A document to search. */
export interface SearchDocument {
  /** Its source, which is shown with each result. */
  readonly path: string;
  /** Plain text or Markdown. */
  readonly text: string;
}

/** A part of a document, which is the unit of search. */
export interface Section {
  readonly path: string;
  /** Its heading and those above it, outermost first. */
  readonly headings: readonly string[];
  readonly text: string;
  /** The part of the text in code blocks. */
  readonly code: string;
  /** The text without code blocks. */
  readonly prose: string;
  /** The line of its start, including its heading, from 1. */
  readonly line: number;
  /** The exact text in the document, with its line endings. */
  readonly original: string;
  /** The position of `original` in the document. */
  readonly span: Required<Span>;
}
