import { type InterceptorOptions, transformChunks, type ChunkInterceptor } from '../interceptor.js';
import { checkOptions, isFlag, isNumber, isText, type Rule, wholeNumber } from '../options.js';
import { type Patterns, readPatterns } from './patterns.js';
import { textWindow } from './text-window.js';

/** What becomes of an answer that says what it must not. */
export interface GuardOutputOptions extends InterceptorOptions {
  /** What the model is told, and asked again with. Without it the call ends with the text before, reason `stopped`. */
  readonly feedback?: string;
  /** How many characters are held back until they are known to be harmless. Default: 64. */
  readonly window?: number;
}

/**
 * Stops an answer while it is written, before what matches is shown: the request is cancelled at once. A match must not be
 * longer than the window, where it comes in pieces. With feedback the model is asked again, twice in a row at most, then the
 * call errors with `guardRejected`. Thinking and the arguments of tools are not looked at.
 */
export const guardOutput = (
  forbidden: Patterns,
  options: GuardOutputOptions = {},
): ChunkInterceptor => {
  checkOptions('guardOutput()', options, rules);
  const { feedback, window = 64, name = 'guardOutput', ...placed } = options;
  const patterns = readPatterns('guardOutput()', forbidden);
  return transformChunks(textWindow({ patterns, window, feedback }), { ...placed, name });
};

const rules: Readonly<Record<keyof GuardOutputOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
  feedback: isText,
  window: wholeNumber(1),
};
