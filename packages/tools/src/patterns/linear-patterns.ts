import { MillraceError } from 'millrace';
import type { PatternEngine } from 'millrace/schema';
import { RE2JS } from 're2js';
import { translate } from './translate.js';

/**
 * Runs the patterns of untrusted JSON Schemas in linear time: no pattern can block the process for 100 ms.
 *
 * Patterns have the semantics of ECMAScript with the flag `u`, even those that are only valid without it, such as
 * `[\w-.]`. A string that is too long for a pattern does not match: the limit is 250,000 characters, or 4,000,000 /
 * instructions, or 100,000 / (50 + instructions) for a nondeterministic pattern with more than 6 parts.
 *
 * Throws a `config` error for an invalid pattern, for one that RE2 does not support (look-around, back-references,
 * inline flags, more than 1,000 repetitions), and for one that is too large: more than 2,000 characters, 100 nested
 * groups or 40 properties such as `\p{L}`, or so many instructions that the limit of a string is less than 300
 * characters.
 */
export const linearPatterns: PatternEngine = (pattern) => {
  if (pattern.length > maxPatternLength) {
    throw refusal(pattern, `it has more than ${maxPatternLength} characters`);
  }
  const { source, parts, steps } = translate(pattern, (why) => refusal(pattern, why));
  if (steps > maxSteps) throw refusal(pattern, 'it is too large');
  const compiled = compile(pattern, source);
  const maxTextLength = maxTextLengthOf(compiled, parts);
  if (maxTextLength < minUsefulLength) throw refusal(pattern, 'it is too large');
  return {
    test: (text) => text.length <= maxTextLength && compiled.test(text),
    // Validators use this as the key of a pattern.
    toString: () => `linear ${pattern}`,
  };
};

const maxPatternLength = 2_000;

/** The estimated instructions of a program, before it is compiled. */
const maxSteps = 2_000;

/** Up to this number, a pattern has no more than some hundred states. */
const fewParts = 6;

/** The maximum length of a string for any pattern. */
const maxLength = 250_000;
const minUsefulLength = 300;

/** The maximum of instructions times characters, if there are few states. */
const maxSingleStateWork = 4_000_000;

/** The same if each character may create a state, which costs somewhat more than its instructions. */
const maxWork = 100_000;
const stateCost = 50;

const maxTextLengthOf = (compiled: RE2JS, parts: number): number => {
  const size = compiled.programSize();
  const hasFewStates = parts <= fewParts || isDeterministic(compiled);
  const longest = hasFewStates ? maxSingleStateWork / size : maxWork / (size + stateCost);
  return Math.min(maxLength, Math.floor(longest));
};

const compile = (pattern: string, source: string): RE2JS => {
  try {
    return RE2JS.compile(source);
  } catch (cause) {
    throw refusal(pattern, `RE2 does not support it`, cause);
  }
};

/** The library runs one-pass patterns without creating states. */
const isDeterministic = (compiled: RE2JS): boolean => {
  const onePass: unknown = compiled.re2().onepass;
  return onePass !== null;
};

const refusal = (pattern: string, why: string, cause?: unknown): MillraceError => {
  const shown = pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
  return new MillraceError(
    'config',
    `The pattern ${JSON.stringify(shown)} cannot be checked in linear time: ${why}. Rewrite it, or check the string in the tool.`,
    { cause },
  );
};
