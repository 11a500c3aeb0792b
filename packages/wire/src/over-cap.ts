import { MillraceError } from '@millrace/core';
import type { Caps } from './caps.js';
import { inside } from './inside.js';

const what: Readonly<Record<keyof Caps, string>> = {
  textLength: 'its text has more characters than',
  argumentLength: 'one tool use has more characters than',
  toolUses: 'it has more tool uses than',
  depth: 'the arguments of a tool use are nested deeper than',
  eventLength: 'one event has more characters than',
  errorBytes: 'its error has more bytes than',
};

/** The error for an answer that goes over a cap: it names the cap, and how to raise it. */
export const overCap = (vendor: string, caps: Caps, cap: keyof Caps): MillraceError =>
  new MillraceError(
    'tooLarge',
    `An answer of ${inside(vendor)} was given up: ${what[cap]} ${caps[cap]}. If that is meant, raise 'caps.${cap}'.`,
  );
