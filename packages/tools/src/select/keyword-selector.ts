import type { Tool, ToolSelector } from 'millrace';
import { checkOptions, type Rule, termsOfRequest } from 'millrace/values';
import { createToolIndex, type ToolIndex } from './tool-index.js';

/** Options of `keywordSelector`. */
export interface KeywordSelectorOptions {
  /** The minimum score of a selected tool, relative to the best one, from 0 to 1. Default: 0.1. */
  readonly threshold?: number | undefined;
  /** The share of wrong letters in a word, from 0 to 0.5; short words must match exactly. Default: 0.2. */
  readonly fuzziness?: number | undefined;
}

/**
 * Selects the tools that share words with the request, best first.
 *
 * It searches for words (BM25), not for meaning: in the name, the description, and the names and descriptions of
 * parameters. Singular and plural, `-ing` forms, prefixes and small misspellings match; synonyms do not. For other
 * languages and free wording, use `embeddingSelector`. The index is cached per list of tools. Only the first and last
 * 1,000 characters of a request count, and of these the first and last 30 words.
 */
export const keywordSelector = (options: KeywordSelectorOptions = {}): ToolSelector => {
  checkOptions('keywordSelector()', options, rules);
  const { threshold = 0.1, fuzziness = 0.2 } = options;
  const indexOf = memoizeByFirstTool(createToolIndex);
  return ({ text, tools }: Parameters<ToolSelector>[0]) => {
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

/** Each call passes a new list of the same tools, so the first tool is the key of the cache. */
const memoizeByFirstTool = (
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
