import type { Observable } from 'rxjs';

export interface RetrievalQuery {
  /** Keywords or a question, as the user wrote it. */
  readonly text: string;
  /** Maximum number of passages, at least 1. Default: 5. */
  readonly limit?: number;
  /** Receives a warning if the search failed in part. */
  readonly report?: (warning: string) => void;
}

export interface Span {
  /** Offset of the first character in UTF-16 units, as in `text.slice(from, to)`. */
  readonly from: number;
  readonly to: number;
  /** Line number of the start, counted from 1. */
  readonly line?: number;
}

export interface RetrievedPassage {
  readonly source: string;
  readonly text: string;
  readonly span?: Span;
  /** Context of the passage, such as the headings above it. */
  readonly title?: string;
  /** Higher is better. Only comparable within one retrieval. */
  readonly score?: number;
}

declare module '../../events.js' {
  interface Events {
    /** Passages that the model may cite, in the order of their numbers. */
    readonly retrieved: { readonly passages: readonly RetrievedPassage[] };
  }
}

declare module '../../values/reply.js' {
  // Merged declarations need the same type parameters.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface Reply<Output = unknown> {
    /** Passages that the model may cite, in the order of their numbers; absent without passages. */
    readonly sources?: readonly RetrievedPassage[];
  }
}

/** Finds passages for a query. Results are untrusted: format them with `numbered` before a model reads them. */
export interface Retriever {
  /**
   * Emits the passages once, best first, or an empty list, and completes. Cold: each subscription searches again, and
   * unsubscribing cancels the search. Errors if the search fails; partial failures go to the query's `report`.
   */
  retrieve$(query: RetrievalQuery): Observable<readonly RetrievedPassage[]>;
}
