import { createHash } from 'node:crypto';
import { MillraceError } from 'millrace';
import type { RetrievedPassage } from 'millrace/retrieval';
import { isRecord, lookUpForm, termsIn } from 'millrace/values';
import type { Row } from '../sql/sql.js';
import { numberIn, textIn } from '../sql/text.js';
import { checkId, storedName } from '../stored-name.js';

/** A part of a document, which is the unit of search. */
export interface IndexChunk {
  /** Offset of its first character in the text of the document. Up to 100,000 characters. */
  readonly from: number;
  readonly to: number;
  /** Line number of the start, counted from 1. */
  readonly line?: number;
  /** Its context, such as the headings above it. Its words count more than those of the text. */
  readonly title?: string;
  /** The source to cite, such as a page of a file. Default: that of the document. */
  readonly source?: string;
}

/** A document to index. */
export interface IndexDocument {
  /** Identifies the document in its index, and is cited: a path or a URL. */
  readonly source: string;
  readonly text: string;
  readonly chunks: readonly IndexChunk[];
}

/** The version of what is stored of a document. Another one indexes all documents again. */
const format = 1;

export interface ChunkRow {
  readonly source: string;
  readonly title: string;
  readonly text: string;
  readonly span: { readonly from: number; readonly to: number; readonly line: number };
}

export interface DocumentRow {
  readonly source: string;
  readonly key: string;
  readonly hash: string;
  readonly chunks: readonly ChunkRow[];
}

/** Longer chunks are refused: no model reads them, and Postgres cannot index them. */
const maxChunk = 100_000;

/** The hash covers everything that decides what is stored. `settings` are those of the index. */
export const documentRow = (document: IndexDocument, settings: readonly unknown[]): DocumentRow => {
  const known = checkedDocument(document);
  const chunks = known.chunks.map((chunk) => chunkRow(known, chunk));
  const content = JSON.stringify([format, ...settings, chunks]);
  return {
    source: known.source,
    key: storedName(known.source),
    hash: createHash('sha256').update(content).digest('hex'),
    chunks,
  };
};

/** Documents are made by the program: only the shape is checked. */
const checkedDocument = (document: unknown): IndexDocument => {
  if (isDocument(document)) {
    checkId('A document', document.source, 'invalidRequest', 'a source');
    return document;
  }
  throw new MillraceError(
    'invalidRequest',
    'An indexed document needs a source, its text, and chunks: a list of { from, to, title?, source? }.',
  );
};

const isDocument = (value: unknown): value is IndexDocument =>
  isRecord(value) &&
  typeof value['source'] === 'string' &&
  typeof value['text'] === 'string' &&
  Array.isArray(value['chunks']) &&
  value['chunks'].every(
    (chunk) =>
      isRecord(chunk) &&
      [chunk['title'], chunk['source']].every((it = '') => typeof it === 'string'),
  );

const chunkRow = ({ source, text }: IndexDocument, chunk: IndexChunk): ChunkRow => {
  const { from, to, line = 0, title = '' } = chunk;
  const isWithin = [from, to, line].every(Number.isSafeInteger) && from >= 0 && to <= text.length;
  if (!isWithin || from >= to || to - from > maxChunk) {
    throw new MillraceError(
      'invalidRequest',
      `A chunk of the document '${source.slice(0, 200)}' has the span ${from} to ${to}. It needs 1 to ${maxChunk} characters of the document's ${text.length}.`,
    );
  }
  return {
    source: chunk.source ?? source,
    title: title.slice(0, maxTitle),
    text: text.slice(from, to),
    span: { from, to, line },
  };
};

const maxTitle = 1_000;

/** The text to embed: about 2,000 tokens, which most embedders accept. */
export const embeddedText = ({ title, text }: ChunkRow): string =>
  (title === '' ? text : `${title}\n${text}`).slice(0, 8_000);

/** The places of the words of a chunk, in their English forms and in order: those of the title, then those of the text. */
export const wordPlaces = ({
  title,
  text,
}: ChunkRow): ReadonlyMap<string, readonly WordPlace[]> => {
  const places = new Map<string, WordPlace[]>();
  let place = 0;
  for (const part of ['title', 'text'] as const) {
    for (const term of termsIn(part === 'title' ? title : text)) {
      const form = lookUpForm(term);
      if (form === undefined || form.length > 100) continue;
      place += 1;
      const known = places.get(form);
      if (known === undefined && places.size < maxWords) places.set(form, [{ part, place }]);
      // Postgres supports no more of either.
      else if (known !== undefined && known.length < 255 && place < 16_383) {
        known.push({ part, place });
      }
    }
  }
  return places;
};

export interface WordPlace {
  readonly part: 'title' | 'text';
  /** The number of the word, counted from 1. */
  readonly place: number;
}

const maxWords = 10_000;

export const passageOf = (row: Row, score: number): RetrievedPassage => {
  const [title, line] = [textIn(row, 'title'), numberIn(row, 'line')];
  return {
    source: textIn(row, 'source'),
    text: textIn(row, 'text'),
    span: {
      from: numberIn(row, 'start'),
      to: numberIn(row, 'stop'),
      ...(line > 0 ? { line } : {}),
    },
    ...(title === '' ? {} : { title }),
    score,
  };
};
