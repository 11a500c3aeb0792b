import { type Embedder, isMillraceError, MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import {
  catchError,
  defer,
  map,
  type Observable,
  type SchedulerLike,
  take,
  throwError,
  throwIfEmpty,
  timeout,
} from 'rxjs';

/** An embedder that can be stored with its vectors. */
export interface IndexEmbedder extends Embedder {
  /** Names the model and its settings. Another id means that vectors are not comparable. */
  readonly id: string;
}

/** A vector of unit length. */
export interface StoredVector {
  readonly values: readonly number[];
  readonly dimensions: number;
}

/**
 * Embeds texts, and checks the result: foreign code. Errors with `timeout`, with `invalidResponse` for vectors that do
 * not fit, with the `MillraceError` of the embedder, or with `unknown` for any other error of it.
 */
export const vectors$ = (
  embedder: IndexEmbedder,
  texts: readonly string[],
  { embedderMs, scheduler }: { readonly embedderMs: number; readonly scheduler: SchedulerLike },
): Observable<readonly StoredVector[]> => {
  const { id } = embedder;
  return defer(() => embedder.embed$(texts)).pipe(
    take(1),
    timeout({
      first: embedderMs,
      scheduler,
      with: () => {
        const message = `The embedder '${id}' did not answer within ${embedderMs} ms (embedderMs).`;
        return throwError(() => new MillraceError('timeout', message));
      },
    }),
    throwIfEmpty(() => misfit(id, 'no vectors')),
    map((vectors) => checked(id, vectors, texts.length)),
    catchError((error: unknown) => {
      if (isMillraceError(error)) throw error;
      const why = messageOf(error);
      throw new MillraceError('unknown', `The embedder '${id}' failed: ${why}`, { cause: error });
    }),
  );
};

const checked = (id: string, vectors: unknown, count: number): readonly StoredVector[] => {
  if (!Array.isArray(vectors)) throw misfit(id, 'something that is not a list of vectors');
  const list: readonly unknown[] = vectors;
  if (list.length !== count) throw misfit(id, `${list.length} vectors for ${count} texts`);
  const stored = list.map((vector) => storedVector(id, vector));
  const { dimensions = 0 } = stored[0] ?? {};
  if (stored.some((vector) => vector.dimensions !== dimensions)) {
    throw misfit(id, 'vectors of different lengths');
  }
  return stored;
};

const storedVector = (id: string, vector: unknown): StoredVector => {
  if (!isNumbers(vector) || vector.length === 0 || vector.length > maxDimensions) {
    throw misfit(id, `a vector that is not a list of 1 to ${maxDimensions} numbers`);
  }
  const length = Math.hypot(...vector);
  if (!Number.isFinite(length)) throw misfit(id, 'a vector of numbers that are not finite');
  const values = vector.map((value) => (length === 0 ? 0 : value / length));
  return { values, dimensions: vector.length };
};

/** The limit of pgvector. */
const maxDimensions = 16_000;

const isNumbers = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((it) => typeof it === 'number');

const misfit = (id: string, what: string): MillraceError =>
  new MillraceError('invalidResponse', `The embedder '${id}' returned ${what}.`);
