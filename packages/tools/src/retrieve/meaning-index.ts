import type { Embedder } from '@millrace/core';
import {
  bufferCount,
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  map,
  type Observable,
  of,
  ReplaySubject,
  share,
  switchMap,
  take,
  tap,
  throwIfEmpty,
} from 'rxjs';
import type { Section } from '../search/document.js';

/** An index of sections by their meaning. */
export interface MeaningIndex {
  /**
   * Emits once the sections that are alike to a text, the most alike first, and completes. Cold. Errors where the
   * embedder does.
   */
  rank$(text: string): Observable<readonly Section[]>;
}

/** Texts that are given to an embedder at once. */
const batch = 64;

/** Characters of a section that are looked at: some 2,000 tokens, which most embedders take. */
const mostCharacters = 8_000;

/**
 * Makes an index that has an embedder make the vectors of sections when it is first asked, in batches, one after the
 * other. Whoever asks while they are made waits for the same ones. Each is made once: where the embedder fails, or all
 * have left, those that are there are kept, and the next who asks has the rest made.
 */
export const createMeaningIndex = (
  embedder: Embedder,
  sections$: Observable<readonly Section[]>,
  threshold: number,
): MeaningIndex => {
  const known = new WeakMap<Section, Vector>();
  const learn$ = (sections: readonly Section[]): Observable<unknown> =>
    vectors$(embedder, sections.map(wordsOf)).pipe(
      tap((vectors) => {
        for (const [at, vector] of vectors.entries()) {
          const section = sections[at];
          if (section !== undefined) known.set(section, vector);
        }
      }),
    );
  const learnt$ = sections$.pipe(
    take(1),
    switchMap((sections) =>
      concat(
        from(sections.filter((section) => !known.has(section))).pipe(
          bufferCount(batch),
          concatMap(learn$),
          ignoreElements(),
        ),
        of(sections),
      ),
    ),
    // Whoever comes while it is told gets it, too.
    share({ connector: () => new ReplaySubject(1) }),
  );
  return {
    // The text first: an embedder that is down is asked for no more than that.
    rank$: (text) =>
      vectors$(embedder, [text]).pipe(
        switchMap(([asked = none]) =>
          learnt$.pipe(
            map((sections) =>
              sections
                .map((section) => ({ section, score: dot(asked, known.get(section) ?? none) }))
                .filter(({ score }) => score >= threshold)
                .sort((a, b) => b.score - a.score)
                .map(({ section }) => section),
            ),
          ),
        ),
      ),
  };
};

const wordsOf = ({ headings, text }: Section): string =>
  [...headings.slice(-3), text].join('\n').slice(0, mostCharacters);

/** Of length 1, so that the product of two is the cosine of the angle between them. */
type Vector = Float32Array;

const none: Vector = new Float32Array();

const vectors$ = (embedder: Embedder, texts: readonly string[]): Observable<readonly Vector[]> =>
  defer(() => embedder.embed$(texts)).pipe(
    take(1),
    throwIfEmpty(() => new TypeError('the embedder gave no vectors')),
    map((vectors) => {
      if (vectors.length !== texts.length) {
        throw new TypeError('the embedder gave another number of vectors than of texts');
      }
      return vectors.map(unit);
    }),
  );

const unit = (vector: readonly number[]): Vector => {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  if (!Number.isFinite(length)) throw new TypeError('the embedder gave what are no numbers');
  return Float32Array.from(vector, (value) => (length === 0 ? 0 : value / length));
};

const dot = (a: Vector, b: Vector): number => {
  if (a.length !== b.length) {
    throw new TypeError('the embedder gave vectors of different lengths');
  }
  let sum = 0;
  // Ten times as fast as a reduce, over every number of every section.
  for (let at = 0; at < a.length; at += 1) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
};
