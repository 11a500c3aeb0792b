import type { Patterns } from '../interceptors/patterns.js';
import type { PrepareInterceptor } from '../interceptor.js';
import { checkOptions, defined } from '../options.js';
import { guardInput, type GuardOptions, guardRules, readingsOf } from './guard-input.js';
import {
  type GuardPattern,
  hasWords,
  type Read,
  read,
  readGuardPatterns,
} from './guard-patterns.js';

/**
 * Refuses what holds none of these, a user's message without text among it. Words are found as by `denyList`; a RegExp is tested
 * on the text as it came, all of it where it has `^` and `$`. It says what an input is about, not that there is nothing
 * else in it: only a RegExp from end to end says that. What brings results of tools, and no message, passes.
 */
export const allowList = (patterns: Patterns, options: GuardOptions = {}): PrepareInterceptor => {
  checkOptions('allowList()', options, guardRules);
  const allowed = readGuardPatterns('allowList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      if (texts.every((text) => allowed.some((it) => holds(text, it)))) return true;
      return { allowed: false, reason: 'it holds nothing that is on the list' };
    },
    { name: 'allowList', ...defined(options) },
  );
};

const holds = (text: Read, it: GuardPattern): boolean =>
  it.kind === 'words' ? hasWords(text.folded, it.words) : it.pattern.test(text.text);
