import { MillraceError } from 'millrace';
import type { Row } from '../sql/sql.js';
import { numberIn, textIn } from '../sql/text.js';
import type { DocumentRow } from './document-rows.js';
import type { StoredVector } from './embed-texts.js';

/** An index in the database. `embedder` and `dimensions` are known from its first vectors on. */
export interface IndexRow {
  readonly place: number;
  readonly language: string | undefined;
  readonly embedder: string | undefined;
  readonly dimensions: number | undefined;
  /** Whether the database can compare vectors. */
  readonly hasVectors: boolean;
}

export interface WordSearch {
  readonly terms: readonly string[];
  readonly text: string;
  readonly limit: number;
}

/** The rows of one index of documents. Each function rejects with a `MillraceError`. */
export interface DocumentTables {
  /** Undefined if nothing was ever added. */
  find(): Promise<IndexRow | undefined>;
  make(): Promise<IndexRow>;
  /** Records the embedder unless another one has added vectors, and returns the index with that which is recorded. */
  setEmbedder(index: IndexRow, embedder: string, dimensions?: number): Promise<IndexRow>;
  hashes(index: IndexRow, keys: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Replaces a document in one transaction. Returns false if another process has stored the same content meanwhile. */
  write(
    index: IndexRow,
    document: DocumentRow,
    vectors: readonly StoredVector[] | undefined,
  ): Promise<boolean>;
  byWords(index: IndexRow, search: WordSearch): Promise<readonly Row[]>;
  byMeaning(
    index: IndexRow,
    vector: StoredVector,
    threshold: number,
    limit: number,
  ): Promise<readonly Row[]>;
  sources(index: IndexRow, prefix: string): Promise<readonly string[]>;
  remove(index: IndexRow, which: Removal): Promise<number>;
}

/** Documents by their sources or by how these begin, or the whole index, with its embedder. */
export type Removal = readonly string[] | { readonly prefix: string } | 'all';

/** Chunks with the most and rarest words of a query, whose ranks are computed: that reads all of their words. */
export const candidates = 300;

export const settingsIn = (row: Row): Pick<IndexRow, 'language' | 'embedder' | 'dimensions'> => ({
  language: optionalText(row, 'language'),
  ...embedderIn(row),
});

export const embedderIn = (row: Row): Pick<IndexRow, 'embedder' | 'dimensions'> => ({
  embedder: optionalText(row, 'embedder'),
  dimensions: row['dimensions'] === null ? undefined : numberIn(row, 'dimensions'),
});

const optionalText = (row: Row, column: string): string | undefined =>
  row[column] === null ? undefined : textIn(row, column);

export const indexRemoved = (name: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The index '${name.slice(0, 100)}' was removed while documents were added to it. Add them again.`,
    { retryable: true },
  );
