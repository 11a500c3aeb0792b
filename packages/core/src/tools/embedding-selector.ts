import { map, type Observable } from 'rxjs';
import { checkOptions, numberFrom } from '../options.js';
import type { ToolSelector } from './select.js';
import type { Tool } from './types.js';

/** What turns texts into vectors, such as a model of embeddings. */
export interface Embedder {
  /** Emits one vector for each text, in their order, and completes. */
  embed$(texts: readonly string[]): Observable<readonly (readonly number[])[]>;
}

/** How alike a tool and a request must be. */
export interface EmbeddingSelectorOptions {
  /** The least cosine of the angle between the two, from 0 to 1. Default: 0.3. */
  readonly threshold?: number;
}

/**
 * Picks the tools whose name and description are alike to what is asked, the most alike first. The vector of a tool is made once, and
 * kept as long as the tool is.
 */
export const embeddingSelector = (
  embedder: Embedder,
  options: EmbeddingSelectorOptions = {},
): ToolSelector => {
  checkOptions('embeddingSelector()', options, { threshold: numberFrom(0) });
  const { threshold = 0.3 } = options;
  const known = new WeakMap<Tool, readonly number[]>();
  return ({ text, tools }) => {
    const fresh = tools.filter((tool) => !known.has(tool));
    return embedder.embed$([text, ...fresh.map(wordsOf)]).pipe(
      map(([asked, ...vectors]) => {
        if (asked === undefined || vectors.length !== fresh.length) {
          throw new TypeError('the embedder gave another number of vectors than of texts');
        }
        fresh.forEach((tool, index) => known.set(tool, vectors[index] ?? []));
        return tools
          .map((tool) => ({ name: tool.name, score: cosine(asked, known.get(tool) ?? []) }))
          .filter(({ score }) => score >= threshold)
          .sort((a, b) => b.score - a.score)
          .map(({ name }) => name);
      }),
    );
  };
};

const wordsOf = ({ name, description }: Tool): string => `${name}: ${description}`;

const cosine = (a: readonly number[], b: readonly number[]): number =>
  dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
