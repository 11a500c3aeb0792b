import { MillraceError } from 'millrace';
import { checkOptions, defined, type Rule } from 'millrace/values';
import { inSentence } from './address.js';

/** Size limits of an answer. An answer that exceeds one errors with `tooLarge`, and its socket is closed. */
export interface Caps {
  /** Characters of text and thinking. Default: 1,000,000. */
  readonly textLength: number;
  /** Characters of one tool call: its arguments, name and id. Default: 1,000,000. */
  readonly argumentLength: number;
  /** Tool calls of one message. Default: 128. */
  readonly toolCalls: number;
  /** Levels of nesting in the arguments of a tool call. Default: 100. */
  readonly depth: number;
  /** Characters of one event, of a non-streaming answer, or of all media of an answer in base64. Default: 32,000,000. */
  readonly eventLength: number;
  /** Bytes read from the body of an error response. Default: 65,536. */
  readonly errorBytes: number;
}

/** The default caps. */
export const defaultCaps: Caps = {
  textLength: 1_000_000,
  argumentLength: 1_000_000,
  toolCalls: 128,
  depth: 100,
  eventLength: 32_000_000,
  errorBytes: 65_536,
};

const count: Rule = [(value) => typeof value === 'number' && value > 0, 'a number above 0'];

const rules: Readonly<Record<keyof Caps, Rule>> = {
  textLength: count,
  argumentLength: count,
  toolCalls: count,
  depth: count,
  eventLength: count,
  errorBytes: count,
};

/** Adds the defaults. Throws a `MillraceError` (`config`) for an unknown cap, or one that is not a number above 0. */
export const capsOf = (set: Partial<Caps> = {}): Caps => {
  checkOptions(`'caps'`, set, rules);
  return { ...defaultCaps, ...defined(set) };
};

const reasons: Readonly<Record<keyof Caps, string>> = {
  textLength: 'its text has more characters than',
  argumentLength: 'one tool call has more characters than',
  toolCalls: 'it has more tool calls than',
  depth: 'the arguments of a tool call are nested deeper than',
  eventLength: 'one event or its media has more characters than',
  errorBytes: 'its error has more bytes than',
};

/** The error for an answer that exceeds a cap. It names the cap and how to raise it. */
export const capExceeded = (vendor: string, caps: Caps, cap: keyof Caps): MillraceError =>
  new MillraceError(
    'tooLarge',
    `An answer from ${inSentence(vendor)} was aborted: ${reasons[cap]} ${caps[cap]}. If that is expected, raise 'caps.${cap}'.`,
  );
