import { MillraceError } from '@millrace/core';
import type { PatternEngine } from '@millrace/core/schema';
import { RE2JS } from 're2js';
import { translate } from './translate.js';

/**
 * Runs the patterns of a JSON Schema in linear time, so that none from elsewhere can stop the process: no pattern and text block for 100 ms.
 *
 * A pattern means what it means to ECMAScript with the flag `u`. One that can only be read without it, such as `[\w-.]`, goes by whole
 * characters, too. A text that is too long for the pattern does not match: one of more than 250,000 characters, of more than 4,000,000 / instructions,
 * or, where there are more than 6 parts and a character does not tell which of them is next, of more than 100,000 / (50 + instructions).
 *
 * Throws a `config` error for what is no pattern, what RE2 cannot run (look-around, back-references, flags of a group, more than 1,000
 * repetitions), and what is too large: more than 2,000 characters, 100 nested groups or 40 properties such as `\p{L}`, or so many instructions
 * that no text of 300 characters could be checked.
 */
export const linearPatterns: PatternEngine = (pattern) => {
  if (pattern.length > longestPattern) {
    throw refusal(pattern, `it has more than ${longestPattern} characters`);
  }
  const { source, parts, steps } = translate(pattern, (why) => refusal(pattern, why));
  if (steps > mostSteps) throw refusal(pattern, 'it is too large');
  const compiled = compile(pattern, source);
  const longestText = longestTextOf(compiled, parts);
  if (longestText < leastUseful) throw refusal(pattern, 'it is too large');
  return {
    test: (text) => text.length <= longestText && compiled.test(text),
    // A validator tells patterns apart by this.
    toString: () => `linear ${pattern}`,
  };
};

const longestPattern = 2_000;

/** Of the program, before it is made. */
const mostSteps = 2_000;

/** So many give some hundred states at most. */
const fewParts = 6;

/** Texts longer than this are checked by no pattern. */
const longestOfAll = 250_000;
const leastUseful = 300;

/** Instructions times characters, where each character looks at one state only. */
const mostLooks = 4_000_000;

/** The same where at worst each character makes a state, which costs somewhat more than its instructions. */
const mostWork = 100_000;
const workOfState = 50;

const longestTextOf = (compiled: RE2JS, parts: number): number => {
  const size = compiled.programSize();
  const isSteady = parts <= fewParts || isDeterministic(compiled);
  const longest = isSteady ? mostLooks / size : mostWork / (size + workOfState);
  return Math.min(longestOfAll, Math.floor(longest));
};

const compile = (pattern: string, source: string): RE2JS => {
  try {
    return RE2JS.compile(source);
  } catch (cause) {
    throw refusal(pattern, `RE2 does not take it`, cause);
  }
};

/** The library runs such a pattern without making states. */
const isDeterministic = (compiled: RE2JS): boolean => {
  const onePass: unknown = compiled.re2().onepass;
  return onePass !== null;
};

const refusal = (pattern: string, why: string, cause?: unknown): MillraceError => {
  const shown = pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
  return new MillraceError(
    'config',
    `The pattern ${JSON.stringify(shown)} cannot be checked in linear time: ${why}. Write it otherwise, or check the text in the tool.`,
    { cause },
  );
};
