import type { Observable } from 'rxjs';

/** What turns texts into vectors, such as a model of embeddings. */
export interface Embedder {
  /** Emits one vector for each text, in their order, and completes. */
  embed$(texts: readonly string[]): Observable<readonly (readonly number[])[]>;
}
