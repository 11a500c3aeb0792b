import { concat, defer, mergeMap, type OperatorFunction } from 'rxjs';
import {
  type ChunkTransform,
  type ContentChunk,
  type StopChunk,
  stopMessage,
  transformContent,
} from '../../models/chunk-transform.js';
import { misuse } from '../../values/errors.js';
import type { Citation } from '../../values/message.js';
import {
  type ChunkHook,
  type Interceptor,
  interceptor,
  type InterceptorOptions,
  placed,
} from '../../seams/interceptor.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, isFlag, isNumber, isText, wholeNumber } from '../../values/options.js';
import { type Patterns, readPatterns } from './patterns.js';
import { characterStart, wholeLength } from '../../values/surrogates.js';

/**
 * Applies an operator to the content of each message while it streams: it may map, drop, merge or add chunks. It is
 * subscribed to once per message, or per response if a provider pauses a message.
 *
 * If it completes early, or emits `stopMessage()`, the request is aborted and the call ends with the text so far, reason
 * `stopped`. With feedback, the message is discarded and the model asked again, up to twice in a row; then the call errors
 * with `guardRejected`. With `failOpen`, chunks that a failed operator did not emit are passed on; text it had split may be lost.
 */
export const transformChunks = (
  operator: ChunkTransform,
  options: InterceptorOptions = {},
): Interceptor => {
  const place = placed('transformChunks()', operator, options);
  const transform: ChunkHook['transform'] = (stage) =>
    transformContent({ ...place, ...stage, operator });
  return interceptor({ kind: 'chunks', ...place, transform });
};

export interface GuardOutputOptions extends InterceptorOptions {
  /** Asks the model again with this message. Default: the call ends with the text before the match, as `stopped`. */
  readonly feedback?: string | undefined;
  /** Characters to hold back until they are known to be harmless. Default: 64. */
  readonly window?: number | undefined;
}

/**
 * Stops an answer while it streams, before a match is shown: the request is cancelled as soon as no further text can
 * undo the match (after `\b` or `$`, one more character; after a lookahead, the window or the end of the text). Chunk
 * boundaries do not matter for matches up to the length of the window, lookahead included, that look back up to 32
 * characters. A match in the URL, the title or the cited text of a citation stops the answer before that citation. With
 * `feedback` the model is asked again, up to twice in a row; then the call errors with `guardRejected`. Ignores thinking,
 * tool arguments and `vendor` blocks.
 */
export const guardOutput = (forbidden: Patterns, options: GuardOutputOptions = {}): Interceptor => {
  checkOptions('guardOutput()', options, rules);
  const { feedback, window = 64, name = 'guardOutput', ...placement } = options;
  const patterns = readPatterns('guardOutput()', forbidden);
  const emptyMatch = patterns.find((pattern) => ''.search(pattern) !== -1);
  if (emptyMatch !== undefined) {
    throw misuse(
      `guardOutput(): /${emptyMatch.source}/ matches the empty string and would stop any answer. Make it match at least one character.`,
    );
  }
  return transformChunks(stopAtMatch({ patterns, window, feedback }), { ...placement, name });
};

const rules: Readonly<Record<keyof GuardOutputOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
  feedback: [
    (value) => typeof value === 'string' && value.trim() !== '',
    'a non-empty message for the model',
  ],
  window: wholeNumber(1),
};

interface StopOptions {
  readonly patterns: readonly RegExp[];
  readonly window: number;
  readonly feedback?: string | undefined;
}

/** Stops a message at the first final match and emits the text before it. Each delta costs a search of the window. */
export const stopAtMatch = ({ patterns, window, feedback }: StopOptions) => {
  const finalPatterns = patterns.map(finalMatchOf);
  const stopIn = (text: string, from: number, length: number): number | undefined => {
    const known = text.slice(0, length);
    const starts = patterns.map((pattern) => matchFrom(pattern, known, from));
    const isSure = starts.some((start, index) => {
      const sure = finalPatterns[index];
      if (start === undefined) return false;
      // Text that leaves the window was held back long enough.
      return start < length - window || (sure && matchFrom(sure, known, from) !== undefined);
    });
    return isSure ? smallest(starts) : undefined;
  };
  /** As if text arrived character by character: a match that ends first precedes one that starts first. */
  const earliestStop = (text: string, from: number, length: number): number | undefined => {
    let stop = stopIn(text, from, length);
    if (stop === undefined) return undefined;
    let [unmatched, matched] = [from, length];
    while (matched - unmatched > 1) {
      const middle = Math.floor((unmatched + matched) / 2);
      const found = stopIn(text, from, characterStart(text, middle));
      if (found === undefined) unmatched = middle;
      else [matched, stop] = [middle, found];
    }
    return stop;
  };
  const isForbidden = (shown: string): boolean =>
    patterns.some((pattern) => matchFrom(pattern, shown, 0) !== undefined);
  const checked = (chunk: ContentChunk): ContentChunk | StopChunk =>
    chunk.type === 'citation' && textsOf(chunk.citation).some(isForbidden)
      ? stopMessage(feedback)
      : chunk;
  return textWindow(({ text, released }, isLast) => {
    const length = isLast ? text.length : wholeLength(text);
    const stop = isLast
      ? smallest(patterns.map((pattern) => matchFrom(pattern, text, released)))
      : earliestStop(text, released, length);
    if (stop !== undefined) {
      const shown = text.slice(released, characterStart(text, stop));
      return {
        chunks: [...textChunk(shown), stopMessage(feedback)],
        rest: holdFrom(text, text.length),
      };
    }
    const cut = isLast ? length : Math.max(released, characterStart(text, length - window));
    return { chunks: textChunk(text.slice(released, cut)), rest: holdFrom(text, cut) };
  }, checked);
};

const textsOf = ({ url = '', title = '', citedText = '' }: Citation): readonly string[] => [
  url,
  title,
  citedText,
];

/** A pattern for matches that further text cannot undo; undefined for patterns with lookaheads. */
const finalMatchOf = ({ source, flags }: RegExp): RegExp | undefined => {
  const syntax = source.replace(/\\[^bB]/g, '');
  if (/\(\?[=!]/.test(syntax)) return undefined;
  return new RegExp(/\$|\\b/i.test(syntax) ? `(?:${source})(?=[^])` : source, flags);
};

const matchFrom = (pattern: RegExp, text: string, from: number): number | undefined => {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index;
};

const smallest = (places: readonly (number | undefined)[]): number | undefined => {
  const found = places.filter((place) => place !== undefined);
  return found.length === 0 ? undefined : Math.min(...found);
};

/** The buffered text of a stream: the end of the released text, and all that is held back. */
export interface HeldText {
  readonly text: string;
  readonly released: number;
  /** Where to search from: `released`, or the start of an unfinished match before it. */
  readonly from: number;
}

export interface Release {
  readonly chunks: readonly (ContentChunk | StopChunk)[];
  readonly rest: HeldText;
}

/** Maximum length of released text kept for lookbehinds. */
const lookbehindLimit = 32;

/** Buffers streamed text. `release` decides, after each delta and at the end, how much of it to emit. */
export const createTextWindow = (release: (held: HeldText, isLast: boolean) => Release) => {
  let held: HeldText = { text: '', released: 0, from: 0 };
  const flush = (isLast: boolean): Release['chunks'] => {
    if (held.released === held.text.length) return [];
    const { chunks, rest } = release(held, isLast);
    held = rest;
    return chunks;
  };
  return {
    push: (text: string): Release['chunks'] => {
      held = { ...held, text: held.text + text };
      return flush(false);
    },
    end: (): Release['chunks'] => flush(true),
  };
};

/** Buffers the text of a message. Other chunks pass after all text before them, as `other` changes them. */
export const textWindow =
  (
    release: (held: HeldText, isLast: boolean) => Release,
    other: (chunk: ContentChunk) => ContentChunk | StopChunk,
  ): OperatorFunction<ContentChunk, ContentChunk | StopChunk> =>
  (chunk$) =>
    defer(() => {
      const { push, end } = createTextWindow(release);
      return concat(
        chunk$.pipe(
          mergeMap((chunk) => {
            if (chunk.type !== 'text') return [...end(), other(chunk)];
            const shown = push(chunk.text);
            // The data of a vendor belongs to all of the text before it.
            return chunk.vendorData === undefined
              ? shown
              : [...shown, ...end(), other({ ...chunk, text: '' })];
          }),
        ),
        defer(end),
      );
    });

export const holdFrom = (text: string, released: number): HeldText =>
  holdMatch(text, released, released);

/** Like `holdFrom`, while the match that began at `start` continues. */
export const holdMatch = (text: string, start: number, released: number): HeldText => {
  const kept = characterStart(text, Math.max(0, start - lookbehindLimit));
  return { text: text.slice(kept), released: released - kept, from: start - kept };
};

export const textChunk = (text: string): readonly ContentChunk[] =>
  text === '' ? [] : [{ type: 'text', text }];
