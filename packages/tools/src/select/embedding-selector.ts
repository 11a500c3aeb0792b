import { checkOptions, numberFrom } from 'millrace/values';
import { createMeaningIndex } from 'millrace/retrieval';
import type { Embedder, Tool, ToolSelector } from 'millrace';
import { map } from 'rxjs';

/** Options of `embeddingSelector`. */
export interface EmbeddingSelectorOptions {
  /** The minimum cosine similarity of tool and request, from 0 to 1. Default: 0.3. */
  readonly threshold?: number | undefined;
}

/**
 * Selects the tools whose name and description are similar to the request, most similar first. The vector of a tool is
 * cached for the lifetime of the tool.
 */
export const embeddingSelector = (
  embedder: Embedder,
  options: EmbeddingSelectorOptions = {},
): ToolSelector => {
  checkOptions('embeddingSelector()', options, { threshold: numberFrom(0) });
  const { threshold = 0.3 } = options;
  const index = createMeaningIndex(embedder, wordsOf, threshold);
  return ({ text, tools }) =>
    index.rank$(text, tools).pipe(map((alike) => alike.map(({ name }) => name)));
};

const wordsOf = ({ name, description }: Tool): string => `${name}: ${description}`;
