import { toolOutput, type ToolOutput } from '@millrace/core';
import type { Passage, SectionIndex } from './section-index.js';

/** From this relevance on a passage is offered as an answer. */
const good = 0.6;

/** Writes what a search found for a model, and says so where nothing fits well. */
export const reportPassages = (index: SectionIndex, query: string, limit: number): ToolOutput => {
  const passages = index.search(query, limit);
  const isGood = passages.some(({ relevance }) => relevance >= good);
  const shown = isGood ? passages.filter(({ relevance }) => relevance >= good / 2) : passages;
  return toolOutput({
    content: [opening(index, query, passages.length, isGood), ...shown.map(written)].join('\n\n'),
    details: { query, passages: shown },
  });
};

const opening = (index: SectionIndex, query: string, found: number, isGood: boolean): string => {
  if (index.size === 0) return 'There are no documents to search.';
  const where = `the ${countOf(index.size)} searched`;
  if (found === 0) return `Nothing in ${where} matches '${query}'. Try other words.`;
  return isGood
    ? `Found in ${where}:`
    : `Nothing in ${where} matches '${query}' well. These passages hold some of the words, and may not answer it:`;
};

const written = ({ path, headings, line, relevance, snippet }: Passage, index: number): string => {
  const heading = headings.length > 0 ? ` › ${headings.join(' › ')}` : '';
  return `${index + 1}. ${path}:${line}${heading} (relevance ${Math.round(relevance * 100)} %)\n${snippet}`;
};

/** `1 file`, `12 files`. */
export const countOf = (files: number): string => `${files} ${files === 1 ? 'file' : 'files'}`;
