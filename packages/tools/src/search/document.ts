import type { Span } from '@millrace/core/retrieval';

/** A text that can be searched. */
export interface SearchDocument {
  /** Where it is from, as it is shown with what is found in it. */
  readonly path: string;
  /** Plain text or Markdown. */
  readonly text: string;
}

/** A part of a document: what is found, and shown. */
export interface Section {
  readonly path: string;
  /** The headings that it stands under, the outermost first. */
  readonly headings: readonly string[];
  readonly text: string;
  /** What of the text stands in blocks of code. */
  readonly code: string;
  /** The text without them. */
  readonly prose: string;
  /** The line of the document on which it begins, its heading included, counted from 1. */
  readonly line: number;
  /** What stands in the document there, as it stands there: the text, with the ends of lines that it has. */
  readonly original: string;
  /** Where in the document that is. */
  readonly span: Required<Span>;
}
