import { misuse } from '../errors.js';

/** What to look for in a text: words as they are, or regular expressions. */
export type Patterns = string | RegExp | readonly (string | RegExp)[];

/** A stretch of a text. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Reads patterns, each made to find every match, or throws a `config` error. */
export const readPatterns = (owner: string, patterns: Patterns): readonly RegExp[] => {
  const list = [patterns].flat();
  if (list.length === 0) throw misuse(`${owner} needs at least one pattern.`);
  return list.map((pattern: unknown) => {
    if (pattern instanceof RegExp) return everyMatch(pattern);
    if (typeof pattern === 'string' && pattern !== '') return new RegExp(literally(pattern), 'g');
    throw misuse(`${owner} takes regular expressions and words that are not empty.`);
  });
};

const everyMatch = ({ source, flags }: RegExp): RegExp =>
  new RegExp(source, `${flags.replace(/[gy]/g, '')}g`);

const literally = (word: string): string => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Finds all that matches any of the patterns, in order; what overlaps or touches is one. */
export const findRanges = (patterns: readonly RegExp[], text: string): readonly Range[] => {
  const found = patterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map((match) => ({ start: match.index, end: match.index + match[0].length }))
    .filter(({ start, end }) => end > start)
    .sort((a, b) => a.start - b.start);
  const merged: Range[] = [];
  for (const range of found) {
    const last = merged.at(-1);
    if (last === undefined || range.start >= last.end) merged.push(range);
    else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
  }
  return merged;
};
