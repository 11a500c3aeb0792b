import { toolOutput, type ToolOutput } from 'millrace';
import { untrustedText } from 'millrace/values';
import type { Passage, SectionIndex } from './section-index.js';

/** The minimum relevance of a passage that may answer the query. */
const goodRelevance = 0.6;

/** Formats search results for a model, with a note if nothing matches well. */
export const reportPassages = (index: SectionIndex, query: string, limit: number): ToolOutput => {
  const passages = index.search(query, limit);
  const isGood = passages.some(({ relevance }) => relevance >= goodRelevance);
  const shown = isGood
    ? passages.filter(({ relevance }) => relevance >= goodRelevance / 2)
    : passages;
  return toolOutput({
    content: [summary(index, query, passages.length, isGood), ...shown.map(formatPassage)].join(
      '\n\n',
    ),
    details: { query, passages: shown },
  });
};

const summary = (index: SectionIndex, query: string, found: number, isGood: boolean): string => {
  if (index.size === 0) return 'There are no documents to search.';
  const where = `the ${countOf(index.size)} searched`;
  if (found === 0) return `Nothing in ${where} matches '${query}'. Try other words.`;
  return isGood
    ? `Found in ${where}:`
    : `Nothing in ${where} matches '${query}' well. These passages contain some of the words, but may not answer it:`;
};

const formatPassage = (
  { path, headings, line, relevance, snippet }: Passage,
  index: number,
): string => {
  const heading =
    headings.length > 0 ? ` › ${untrustedText(headings.join(' › '), { labels: false })}` : '';
  return `${index + 1}. ${path}:${line}${heading} (relevance ${Math.round(relevance * 100)} %)\n${untrustedText(snippet)}`;
};

/** Returns `1 file` or `12 files`. */
export const countOf = (files: number): string => `${files} ${files === 1 ? 'file' : 'files'}`;
