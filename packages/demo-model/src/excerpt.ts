import { contentTokens, stemsOf } from './words.js';

/** Lines of an excerpt, and characters of one line. */
const mostLines = 12;
const longestLine = 300;

/** Lines that are looked at. */
const mostLinesRead = 5_000;

/**
 * Takes from a long text what a reader asked for: the lines that hold the words in focus, else its beginning.
 * What is left out is said.
 */
export const excerpt = (text: string, focus: ReadonlySet<string>): string => {
  const lines = text.trim().split('\n', mostLinesRead);
  return linesInFocus(lines, focus) ?? head(text.trim(), lines);
};

const linesInFocus = (lines: readonly string[], focus: ReadonlySet<string>): string | undefined => {
  if (focus.size === 0) return undefined;
  const scored = lines.map((line, index) => ({ line, index, score: coverage(line, focus) }));
  const best = Math.max(...scored.map(({ score }) => score));
  if (best === 0) return undefined;
  return scored
    .filter(({ score }) => score >= best / 2)
    .slice(0, mostLines / 2)
    .map(({ line }) => cut(line.trim()))
    .join('\n');
};

/** The part of the words in focus, from 0 to 1, that a text holds. */
export const coverage = (text: string, focus: ReadonlySet<string>): number => {
  const stems = new Set(stemsOf(text.slice(0, 4_000)));
  const held = [...focus].filter((stem) => stems.has(stem)).length;
  return focus.size === 0 ? 0 : held / focus.size;
};

/** The stems of a text's words that carry meaning, other than those in `without`. */
export const focusOf = (
  text: string,
  without: ReadonlySet<string> = new Set(),
): ReadonlySet<string> =>
  new Set(
    contentTokens(text)
      .flatMap((token) => stemsOf(token.text))
      .filter((stem) => !without.has(stem)),
  );

const head = (text: string, lines: readonly string[]): string => {
  const shown = lines.slice(0, mostLines).map(cut).join('\n');
  const more = text.length - shown.length;
  return more > 0 ? `${shown}\n… (${more} more characters)` : shown;
};

const cut = (line: string): string =>
  line.length > longestLine ? `${line.slice(0, longestLine)}…` : line;
