import { concat, defer, mergeMap, type OperatorFunction } from 'rxjs';
import { type ContentChunk, type StopChunk, stopMessage } from '../../models/chunk-transform.js';
import { misuse } from '../../values/errors.js';
import type { Interceptor, InterceptorOptions } from '../../seams/interceptor.js';
import { transformChunks } from '../../seams/interceptor.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, isFlag, isNumber, isText, wholeNumber } from '../../values/options.js';
import { type Patterns, readPatterns } from './patterns.js';
import { characterStart, wholeLength } from '../../values/surrogates.js';

/** What becomes of an answer that says what it must not. */
export interface GuardOutputOptions extends InterceptorOptions {
  /** What the model is told, and asked again with. Without it the call ends with the text before, reason `stopped`. */
  readonly feedback?: string;
  /** Characters held back until they are known to be harmless. Default: 64. */
  readonly window?: number;
}

/**
 * Stops an answer while it is written, before a match is shown: the request is cancelled as soon as no further text can undo the match (after `\b` or `$`, that takes one more character; after a lookahead, the window or the end of the text). How the text is split into pieces makes no difference to matches up to the
 * length of the window, lookahead included, that look back 32 characters or less. An empty match stops the answer where it is. With `feedback` the model is asked again, up to twice in a row; then the call errors with `guardRejected`. Does not look at thinking or tool arguments.
 */
export const guardOutput = (forbidden: Patterns, options: GuardOutputOptions = {}): Interceptor => {
  checkOptions('guardOutput()', options, rules);
  const { feedback, window = 64, name = 'guardOutput', ...placed } = options;
  const patterns = readPatterns('guardOutput()', forbidden);
  const idle = patterns.find((pattern) => ''.search(pattern) !== -1);
  if (idle !== undefined) {
    throw misuse(
      `guardOutput(): /${idle.source}/ matches where there is nothing, and would stop any answer. Make it match a character at least.`,
    );
  }
  return transformChunks(stopAtMatch({ patterns, window, feedback }), { ...placed, name });
};

const rules: Readonly<Record<keyof GuardOutputOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
  feedback: [
    (value) => typeof value === 'string' && value.trim() !== '',
    'a text that tells the model what to do instead',
  ],
  window: wholeNumber(1),
};

interface Stopping {
  readonly patterns: readonly RegExp[];
  /** How many characters are held back, so that nothing is shown of a match which comes in pieces. */
  readonly window: number;
  /** What the model is told when a match has stopped its message. */
  readonly feedback?: string | undefined;
}

/** Stops a message at the first final match, and shows what is before it. Each delta costs a search of the window. */
export const stopAtMatch = ({ patterns, window, feedback }: Stopping) => {
  const lasting = patterns.map(lastingMatch);
  const stopIn = (text: string, from: number, length: number): number | undefined => {
    const known = text.slice(0, length);
    const starts = patterns.map((pattern) => matchFrom(pattern, known, from));
    const isSure = starts.some((start, index) => {
      const sure = lasting[index];
      if (start === undefined) return false;
      // What would be let through now has been waited for long enough.
      return start < length - window || (sure && matchFrom(sure, known, from) !== undefined);
    });
    return isSure ? least(starts) : undefined;
  };
  /** As though the text had come character by character: a match that ends first goes before one that begins first. */
  const earliestStop = (text: string, from: number, length: number): number | undefined => {
    let stop = stopIn(text, from, length);
    if (stop === undefined) return undefined;
    let [without, within] = [from, length];
    while (within - without > 1) {
      const middle = Math.floor((without + within) / 2);
      const found = stopIn(text, from, characterStart(text, middle));
      if (found === undefined) without = middle;
      else [within, stop] = [middle, found];
    }
    return stop;
  };
  return textWindow(({ text, passed }, isLast) => {
    const length = isLast ? text.length : wholeLength(text);
    const stop = isLast
      ? least(patterns.map((pattern) => matchFrom(pattern, text, passed)))
      : earliestStop(text, passed, length);
    if (stop !== undefined) {
      const shown = text.slice(passed, characterStart(text, stop));
      return {
        chunks: [...textChunk(shown), stopMessage(feedback)],
        rest: heldFrom(text, text.length),
      };
    }
    const cut = isLast ? length : Math.max(passed, characterStart(text, length - window));
    return { chunks: textChunk(text.slice(passed, cut)), rest: heldFrom(text, cut) };
  });
};

/** The pattern of matches that stay matches whatever follows. There is none for patterns with longer lookaheads. */
const lastingMatch = ({ source, flags }: RegExp): RegExp | undefined => {
  const syntax = source.replace(/\\[^bB]/g, '');
  if (/\(\?[=!]/.test(syntax)) return undefined;
  return new RegExp(/\$|\\b/i.test(syntax) ? `(?:${source})(?=[^])` : source, flags);
};

const matchFrom = (pattern: RegExp, text: string, from: number): number | undefined => {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index;
};

const least = (places: readonly (number | undefined)[]): number | undefined => {
  const found = places.filter((place) => place !== undefined);
  return found.length === 0 ? undefined : Math.min(...found);
};

/** The text that matters while a message streams: the end of what has been let through, and all that is held back. */
export interface HeldText {
  readonly text: string;
  readonly passed: number;
  /** Where to look for matches from: where `passed` is, or before it, where a match began that has not ended yet. */
  readonly from: number;
}

export interface Release {
  readonly chunks: readonly (ContentChunk | StopChunk)[];
  readonly rest: HeldText;
}

/** Characters in front of what is held that a pattern may look back on. */
const lookBehind = 32;

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

export const textChunk = (text: string): readonly ContentChunk[] =>
  text === '' ? [] : [{ type: 'text', text }];
