import { misuse } from '../errors.js';
import { type InterceptorOptions, transformChunks, type ChunkInterceptor } from '../interceptor.js';
import { checkOptions, isFlag, isNumber, isText, type Rule, wholeNumber } from '../options.js';
import { type Patterns, readPatterns } from './patterns.js';
import { stopAtMatch } from './stop-at-match.js';

/** What becomes of an answer that says what it must not. */
export interface GuardOutputOptions extends InterceptorOptions {
  /** What the model is told, and asked again with. Without it the call ends with the text before, reason `stopped`. */
  readonly feedback?: string;
  /**
   * How many characters are held back until they are known to be harmless. Default: 64. While they are, they are neither
   * in the reply of a call that is interrupted, nor in the `partial` text of an error.
   */
  readonly window?: number;
}

/**
 * Stops an answer while it is written, before what matches is shown: the request is cancelled as soon as more text cannot
 * undo the match. After `\b` or `$` that takes one more character, after a look ahead the window, or the end of the text.
 * How the text comes in pieces makes no difference to a match which is not longer than the window, with what it looks ahead
 * to, and looks back on 32 characters at most. A match of no characters stops the answer where it is. With feedback the
 * model is asked again, twice in a row at most, then the call errors with `guardRejected`. Thinking and the arguments of
 * tools are not looked at.
 */
export const guardOutput = (
  forbidden: Patterns,
  options: GuardOutputOptions = {},
): ChunkInterceptor => {
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
