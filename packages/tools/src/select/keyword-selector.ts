import type { SelectionRequest, Tool, ToolSelector } from '@millrace/core';
import { checkOptions, type Rule, termsOfRequest } from '@millrace/core/adapter';
import { createToolIndex, type ToolIndex } from './tool-index.js';

/** How much of what a search finds is picked. */
export interface KeywordSelectorOptions {
  /** The least score of a tool that is picked, as a share of the best one's, from 0 to 1. Default: 0.1. */
  readonly threshold?: number;
  /** The share of a word's letters that may be wrong, from 0 to 0.5; short words must be right. Default: 0.2. */
  readonly fuzziness?: number;
}

/**
 * Picks the tools whose words are those of the request, the best first; none where no word is.
 *
 * It searches for words (BM25), not for meaning: in the name, the description, and the names and descriptions of the parameters. Singular and plural,
 * forms in `-ing`, beginnings and small misspellings match, synonyms do not; for other languages, and where people say things in their own words,
 * `embeddingSelector` is better. The index is made once for a list of tools. Of a long request, the first and the last 1,000 characters count, and of
 * these the first and the last 30 words.
 */
export const keywordSelector = (options: KeywordSelectorOptions = {}): ToolSelector => {
  checkOptions('keywordSelector()', options, rules);
  const { threshold = 0.1, fuzziness = 0.2 } = options;
  const indexOf = rememberLast(createToolIndex);
  return ({ text, tools }: SelectionRequest) => {
    const found = indexOf(tools).search(termsOfRequest(text), fuzziness);
    const best = found[0]?.score ?? 0;
    return found.filter(({ score }) => score >= threshold * best).map(({ name }) => name);
  };
};

const upTo = (most: number): Rule => [
  (value) => typeof value === 'number' && value >= 0 && value <= most,
  `a number from 0 to ${most}`,
];

const rules: Readonly<Record<keyof KeywordSelectorOptions, Rule>> = {
  threshold: upTo(1),
  fuzziness: upTo(0.5),
};

/** A call gives a list of its own, of the same tools; so the first of them leads to what was made. */
const rememberLast = (
  create: (tools: readonly Tool[]) => ToolIndex,
): ((tools: readonly Tool[]) => ToolIndex) => {
  const made = new WeakMap<Tool, { readonly tools: readonly Tool[]; readonly index: ToolIndex }>();
  return (tools) => {
    const [first] = tools;
    const last = first === undefined ? undefined : made.get(first);
    if (last !== undefined && areSame(last.tools, tools)) return last.index;
    const index = create(tools);
    if (first !== undefined) made.set(first, { tools: [...tools], index });
    return index;
  };
};

const areSame = (a: readonly Tool[], b: readonly Tool[]): boolean =>
  a.length === b.length && a.every((tool, index) => tool === b[index]);
