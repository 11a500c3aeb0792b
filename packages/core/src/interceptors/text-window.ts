import { concat, defer, mergeMap, type OperatorFunction } from 'rxjs';
import type { ContentChunk, StopChunk } from '../content-through.js';
import { characterStart } from './surrogates.js';

/** The text that matters while a message streams: the end of what has been let through, and all that is held back. */
export interface HeldText {
  readonly text: string;
  /** How much of it has been let through. */
  readonly passed: number;
  /** Where to look for matches from: where `passed` is, or before it, where a match began that has not ended yet. */
  readonly from: number;
}

export interface Release {
  readonly chunks: readonly (ContentChunk | StopChunk)[];
  readonly rest: HeldText;
}

/** Characters in front of what is held that a pattern may look back on. */
export const lookBehind = 32;

/** Text that passes a function which says after each piece, and at the end, what of it is let through. */
export const createTextWindow = (release: (held: HeldText, isLast: boolean) => Release) => {
  let held: HeldText = { text: '', passed: 0, from: 0 };
  const released = (isLast: boolean): Release['chunks'] => {
    if (held.passed === held.text.length) return [];
    const { chunks, rest } = release(held, isLast);
    held = rest;
    return chunks;
  };
  return {
    push: (text: string): Release['chunks'] => {
      held = { ...held, text: held.text + text };
      return released(false);
    },
    end: (): Release['chunks'] => released(true),
  };
};

/** Leads the text of a message through a window. What is no text passes as it is, after all of the text that came before it. */
export const textWindow =
  (
    release: (held: HeldText, isLast: boolean) => Release,
  ): OperatorFunction<ContentChunk, ContentChunk | StopChunk> =>
  (chunk$) =>
    defer(() => {
      const { push, end } = createTextWindow(release);
      return concat(
        chunk$.pipe(
          mergeMap((chunk) => (chunk.type === 'text' ? push(chunk.text) : [...end(), chunk])),
        ),
        defer(end),
      );
    });

export const heldFrom = (text: string, passed: number): HeldText =>
  heldWithin(text, passed, passed);

/** As `heldFrom`, where the match that began at `start` goes on. */
export const heldWithin = (text: string, start: number, passed: number): HeldText => {
  const kept = characterStart(text, Math.max(0, start - lookBehind));
  return { text: text.slice(kept), passed: passed - kept, from: start - kept };
};

/** A chunk of a text, unless it is empty. */
export const textChunk = (text: string): readonly ContentChunk[] =>
  text === '' ? [] : [{ type: 'text', text }];
