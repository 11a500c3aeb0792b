import { findRanges, type Range, replaced } from './patterns.js';
import { characterStart } from './surrogates.js';
import { type HeldText, heldFrom, heldWithin, textChunk, textWindow } from './text-window.js';

/** What is to be put for what. */
export interface Replacing {
  readonly patterns: readonly RegExp[];
  /** How many characters are held back, so that a match which comes in pieces is seen whole. */
  readonly window: number;
  readonly replace: (match: string) => string;
}

/** How many windows a match is held back for, before what stands for it is shown and the rest of it only dropped. */
const patience = 4;

/**
 * Replaces what matches in the text of a message while it streams. Each delta costs a search of the window. A match that
 * does not end is replaced once, by what stands for its first part, and dropped for as long as it goes on.
 */
export const replaceMatches = ({ patterns, window, replace }: Replacing) =>
  textWindow(({ text, passed, from }, isLast) => {
    const ranges = findRanges(patterns, text, from).filter(({ end }) => end > passed);
    const due = isLast ? text.length : Math.max(passed, characterStart(text, text.length - window));
    const across = ranges.find(({ start, end }) => start < due && due < end);
    const isLong =
      across !== undefined && across.start < Math.max(passed, text.length - patience * window);
    const cut = across === undefined || isLong ? due : across.start;
    return {
      chunks: textChunk(replaced(text, ranges, replace, { start: passed, end: cut })),
      rest: isLong
        ? remembered(heldWithin(text, across.start, cut), patterns, window)
        : heldFrom(text, cut),
    };
  });

/**
 * Keeps what is remembered of a long match short. Such a match goes round in a loop of its pattern, and without some turns
 * of it the pattern matches as far as before. What is left out is tried, as a turn may have any length.
 */
const remembered = (held: HeldText, patterns: readonly RegExp[], window: number): HeldText => {
  const { text, passed, from } = held;
  const most = passed - from - 2 * window;
  if (most <= (patience - 2) * window) return held;
  const end = reach(held, patterns);
  const shorter = Array.from({ length: window + 1 }, (_, index) => most - index);
  for (const left of shorter) {
    const join = from + window;
    const tried = {
      text: text.slice(0, join) + text.slice(join + left),
      passed: passed - left,
      from,
    };
    if (reach(tried, patterns) === end - left) return tried;
  }
  return heldFrom(text, passed);
};

/** Where the match ends that has begun. */
const reach = ({ text, from }: HeldText, patterns: readonly RegExp[]): number =>
  findRanges(patterns, text, from).find(({ start }: Range) => start === from)?.end ?? 0;
