import { concat, defer, mergeMap, type OperatorFunction } from 'rxjs';
import { type ContentChunk, type StopChunk, stopMessage } from '../content-through.js';
import { findRanges, type Range } from './patterns.js';

/** What is to be done with text that matches. */
export interface TextWindow {
  readonly patterns: readonly RegExp[];
  /** How many characters are held back, so that a match which comes in pieces is seen whole. */
  readonly window: number;
  /** Gives what stands for a match. Without it, a match stops the message. */
  readonly replace?: ((match: string) => string) | undefined;
  /** What the model is told when a match has stopped its message. */
  readonly feedback?: string | undefined;
}

type Piece = ContentChunk | StopChunk;

/** Characters in front of the window that a pattern may look back on. */
const lookBehind = 32;

/**
 * Lets text through once it can be no part of a match any more: so many characters later, or at its end. What is no text
 * passes as it is, behind the text that came before it. Each delta costs a search of the window.
 */
export const textWindow =
  ({ patterns, window, replace, feedback }: TextWindow): OperatorFunction<ContentChunk, Piece> =>
  (chunk$) =>
    defer(() => {
      let before = '';
      let held = '';
      const release = (isLast: boolean): readonly Piece[] => {
        const ranges = rangesBehind(before, held, patterns);
        const [first] = ranges;
        if (replace === undefined && first !== undefined) {
          return [...textChunk(held.slice(0, first.start)), stopMessage(feedback)];
        }
        const cut = isLast
          ? held.length
          : cutOf(held.length - window, ranges, held.length - 4 * window);
        const text =
          replace === undefined
            ? held.slice(0, cut)
            : replaced(held.slice(0, cut), ranges, replace);
        before = (before + held.slice(0, cut)).slice(-lookBehind);
        held = held.slice(cut);
        return textChunk(text);
      };
      return concat(
        chunk$.pipe(
          mergeMap((chunk) => {
            if (chunk.type !== 'text') return [...release(true), chunk];
            held += chunk.text;
            return release(false);
          }),
        ),
        defer(() => release(true)),
      );
    });

/** Replaces what matches in a text. */
export const replaced = (
  text: string,
  ranges: readonly Range[],
  replace: (match: string) => string,
): string => {
  let from = 0;
  const parts = ranges
    .filter(({ start }) => start < text.length)
    .flatMap(({ start, end }) => {
      const kept = text.slice(from, start);
      from = end;
      return [kept, replace(text.slice(start, end))];
    });
  return [...parts, text.slice(from)].join('');
};

const rangesBehind = (
  before: string,
  held: string,
  patterns: readonly RegExp[],
): readonly Range[] =>
  held === ''
    ? []
    : findRanges(patterns, before + held)
        .map(({ start, end }) => ({
          start: Math.max(0, start - before.length),
          end: end - before.length,
        }))
        .filter(({ end }) => end > 0);

/** A match is not cut in two, unless it is far longer than the window. */
const cutOf = (target: number, ranges: readonly Range[], farBack: number): number => {
  const across = ranges.find(({ start, end }) => start < target && target < end);
  return Math.max(0, across === undefined || across.start < farBack ? target : across.start);
};

const textChunk = (text: string): readonly ContentChunk[] =>
  text === '' ? [] : [{ type: 'text', text }];
