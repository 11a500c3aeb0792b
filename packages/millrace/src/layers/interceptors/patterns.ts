import { misuse } from '../../values/errors.js';
import { characterEnd, characterStart } from '../../values/surrogates.js';

export type Patterns = string | RegExp | readonly (string | RegExp)[];

export interface Range {
  readonly start: number;
  readonly end: number;
}

export const readPatterns = (owner: string, patterns: Patterns): readonly RegExp[] => {
  const list = [patterns].flat();
  if (list.length === 0) throw misuse(`${owner} needs at least one pattern.`);
  return list.map((pattern: unknown) => {
    if (pattern instanceof RegExp) return withGlobalFlag(pattern);
    if (typeof pattern === 'string' && pattern !== '') return new RegExp(escaped(pattern), 'g');
    throw misuse(`${owner} takes regular expressions and non-empty words.`);
  });
};

const withGlobalFlag = ({ source, flags }: RegExp): RegExp =>
  new RegExp(source, `${flags.replace(/[gy]/g, '')}g`);

const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Finds all matches of any pattern, in order, aligned to whole characters. Merges overlaps and skips empty matches. */
export const findRanges = (
  patterns: readonly RegExp[],
  text: string,
  from = 0,
): readonly Range[] => {
  const found = patterns
    .flatMap((pattern) => {
      pattern.lastIndex = from;
      return [...text.matchAll(pattern)];
    })
    .map(({ 0: { length }, index }) => ({ start: index, end: index + length }))
    .filter(({ start, end }) => end > start)
    .map(({ start, end }) => ({ start: characterStart(text, start), end: characterEnd(text, end) }))
    .sort((a, b) => a.start - b.start);
  const merged: Range[] = [];
  for (const range of found) {
    const last = merged.at(-1);
    if (last === undefined || range.start >= last.end) merged.push(range);
    else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
  }
  return merged;
};

/** Replaces the matches within a range. A match that began before it has been replaced already. */
export const replaceRanges = (
  text: string,
  ranges: readonly Range[],
  replace: (match: string) => string,
  within: Range = { start: 0, end: text.length },
): string => {
  let from = within.start;
  const parts = ranges
    .filter(({ start }) => start < within.end)
    .flatMap((range) => {
      const end = Math.min(range.end, within.end);
      const kept = text.slice(from, range.start);
      from = end;
      return range.start < within.start ? [] : [kept, replace(text.slice(range.start, end))];
    });
  return [...parts, text.slice(from, within.end)].join('');
};
