import { MillraceError } from '@millrace/core';
import type { Caps } from './caps.js';
import { inSentence } from './in-sentence.js';

const reasons: Readonly<Record<keyof Caps, string>> = {
  textLength: 'its text has more characters than',
  argumentLength: 'one tool call has more characters than',
  toolCalls: 'it has more tool calls than',
  depth: 'the arguments of a tool call are nested deeper than',
  eventLength: 'one event has more characters than',
  errorBytes: 'its error has more bytes than',
};

/** The error for an answer that exceeds a cap. It names the cap and how to raise it. */
export const capExceeded = (vendor: string, caps: Caps, cap: keyof Caps): MillraceError =>
  new MillraceError(
    'tooLarge',
    `An answer of ${inSentence(vendor)} was aborted: ${reasons[cap]} ${caps[cap]}. If that is expected, raise 'caps.${cap}'.`,
  );
