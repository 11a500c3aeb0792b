import type { ModelChunk, Usage } from 'millrace';
import { checkOptions, type Rule, wholeNumber } from 'millrace/values';
import { defer, type Observable, of } from 'rxjs';

/** An answer of a model in a cache: plain JSON. */
export interface CachedResponse {
  /** The content of the answer, with adjacent deltas joined, and its finish. */
  readonly chunks: readonly ModelChunk[];
  /** The usage of the answer when it was made. */
  readonly usage: Usage;
  /** When it was stored and when it expires, in milliseconds since the epoch. */
  readonly storedAt: number;
  readonly expiresAt: number;
  /** The meaning of its question, if the cache also answers similar questions. */
  readonly question?: SimilarQuestion;
}

/** A question, for a search by meaning. */
export interface SimilarQuestion {
  /** All but the question: two questions are only compared if this is the same. */
  readonly place: string;
  /** The vector of the question, of length 1. */
  readonly vector: readonly number[];
}

/** The most similar answer of a search by meaning. */
export interface SimilarResponse {
  readonly response: CachedResponse;
  /** The cosine of the angle between the two questions, up to 1. */
  readonly similarity: number;
}

/**
 * Where `cacheResponses` keeps answers. Keys are requests as text, so they may be long: a store with a limit hashes
 * them. All methods are cold. An error is reported as a `warning`, and the model is asked.
 */
export interface ResponseStore {
  /** Emits the response of a key or `undefined`, and completes. It may be expired. */
  get$(key: string): Observable<CachedResponse | undefined>;
  /** Stores a response and completes. What it emits is ignored. */
  set$(key: string, response: CachedResponse): Observable<unknown>;
  /**
   * Emits the most similar response of a place that has not expired at `now`, or `undefined`, and completes. Needed for
   * `meaning`.
   */
  nearest$?(question: SimilarQuestion, now: number): Observable<SimilarResponse | undefined>;
}

/**
 * Keeps responses in this process: up to `maxEntries` (default: 1,000), dropping those that were used least recently. Pass
 * it to several caches to share it.
 */
export const inProcessResponses = (
  options: { readonly maxEntries?: number | undefined } = {},
): Required<ResponseStore> => {
  checkOptions('inProcessResponses()', options, rules);
  const { maxEntries = 1_000 } = options;
  const entries = new Map<string, CachedResponse>();
  const places = new Map<string, Set<string>>();
  const drop = (key: string): void => {
    const place = entries.get(key)?.question?.place;
    entries.delete(key);
    if (place === undefined) return;
    const keys = places.get(place);
    keys?.delete(key);
    if (keys?.size === 0) places.delete(place);
  };
  /** A Map lists its keys in the order in which they were set: the least recent one first. */
  const touch = (key: string, response: CachedResponse): void => {
    entries.delete(key);
    entries.set(key, response);
  };
  const add = (key: string, response: CachedResponse): void => {
    drop(key);
    entries.set(key, response);
    if (response.question !== undefined) {
      const { place } = response.question;
      const keys = places.get(place) ?? new Set();
      places.set(place, keys.add(key));
    }
    const [oldest] = entries.keys();
    if (entries.size > maxEntries && oldest !== undefined) drop(oldest);
  };
  return {
    get$: (key) =>
      defer(() => {
        const response = entries.get(key);
        if (response !== undefined) touch(key, response);
        return of(response);
      }),
    set$: (key, response) =>
      defer(() => {
        add(key, response);
        return of(undefined);
      }),
    nearest$: (question, now) =>
      defer(() => {
        const keys = places.get(question.place) ?? [];
        const best = nearestIn(entries, keys, question.vector, now);
        if (best !== undefined) touch(best.key, best.found.response);
        return of(best?.found);
      }),
  };
};

interface Nearest {
  readonly key: string;
  readonly found: SimilarResponse;
}

/** The most similar of some entries, of those that have not expired. */
const nearestIn = (
  entries: ReadonlyMap<string, CachedResponse>,
  keys: Iterable<string>,
  vector: readonly number[],
  now: number,
): Nearest | undefined => {
  let best: Nearest | undefined;
  for (const key of keys) {
    const response = entries.get(key);
    if (response?.question === undefined || !isCurrent(response, now)) continue;
    const similarity = cosine(vector, response.question.vector);
    if (best !== undefined && similarity <= best.found.similarity) continue;
    best = { key, found: { response, similarity } };
  }
  return best;
};

/** Clocks of processes that share a store rarely differ by more, in milliseconds. */
const skewMs = 60_000;

/** Whether a response has not expired. One that a clock has dated after `now` may never expire, so it does not count. */
export const isCurrent = (
  { storedAt, expiresAt }: Pick<CachedResponse, 'storedAt' | 'expiresAt'>,
  now: number,
): boolean => expiresAt > now && !(storedAt > now + skewMs);

const rules: Readonly<Record<'maxEntries', Rule>> = { maxEntries: wholeNumber(1) };

/** The cosine of the angle between two vectors of length 1; 0 for vectors of different models. */
const cosine = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length ? a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0) : 0;
