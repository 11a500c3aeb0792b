import { checkOptions, createMeaningIndex, numberFrom } from '@millrace/core/adapter';
import type { Embedder, Tool, ToolSelector } from '@millrace/core';
import { map } from 'rxjs';

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
  const index = createMeaningIndex(embedder, wordsOf, threshold);
  return ({ text, tools }) =>
    index.rank$(text, tools).pipe(map((alike) => alike.map(({ name }) => name)));
};

const wordsOf = ({ name, description }: Tool): string => `${name}: ${description}`;
