import type { Observable } from 'rxjs';

/** What is looked for. */
export interface RetrievalQuery {
  /** Words or a question, as a user says it. */
  readonly text: string;
  /** The most passages, at least 1. Default: 5. */
  readonly limit?: number;
  /** Is told in a sentence what did not work where there is a result nevertheless. Default: nobody is. */
  readonly report?: (warning: string) => void;
}

/** A place in a text. */
export interface Span {
  /** The first character, counted from 0 in UTF-16 units, as `text.slice(from, to)` does. */
  readonly from: number;
  /** The character behind the last one. */
  readonly to: number;
  /** The line on which it begins, counted from 1. */
  readonly line?: number;
}

/** A part of a source that was found. */
export interface RetrievedPassage {
  /** Which document it is from, such as its path or address. */
  readonly source: string;
  readonly text: string;
  /** Where it stands in the source. The source has `text` in just that place. */
  readonly span?: Span;
  /** What it is about, such as the headings above it. */
  readonly title?: string;
  /** The greater the better; good for comparing passages of one retrieval, and for nothing else. */
  readonly score?: number;
}

declare module '../../events.js' {
  interface Events {
    /** What the model may cite, in the order of its numbers. */
    readonly retrieved: { readonly passages: readonly RetrievedPassage[] };
  }
}

declare module '../../values/reply.js' {
  // Declarations that merge have the same parameters.
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface Reply<Output = unknown> {
    /** What was found for the call and the model may cite, in the order of its numbers; absent where there is none. */
    readonly sources?: readonly RetrievedPassage[];
  }
}

/** Finds passages that may answer a query: by words, by meaning, or by asking a search engine. What it gives is from outside: whoever shows it to a model writes it with `numbered`. */
export interface Retriever {
  /**
   * Emits the passages once, the best first, an empty list where there are none, and completes. Cold: each
   * subscription looks anew, and leaving it ends the search. Errors where nothing can be looked for at all; what
   * fails in part is reported to the query.
   */
  retrieve$(query: RetrievalQuery): Observable<readonly RetrievedPassage[]>;
}
