import type { Patterns } from '../interceptors/patterns.js';
import type { Interceptor } from '../interceptor.js';
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
export const allowList = (patterns: Patterns, options: GuardOptions = {}): Interceptor => {
  checkOptions('allowList()', options, guardRules);
  const allowed = readGuardPatterns('allowList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      if (texts.every((text) => allowed.some((it) => isFound(text, it)))) return true;
      return { allowed: false, reason: 'it holds nothing that is on the list' };
    },
    { name: 'allowList', ...defined(options) },
  );
};

/**
 * Refuses what holds any of these. Words are found as whole words in any case, however their characters are encoded (NFKC),
 * whatever white space is between them and whatever invisible characters are in them; in scripts that do not part their words,
 * anywhere. A RegExp is tested as it is, on the text as it came and on that which is read; one with the flag `g` or `y`
 * is refused, and one that backtracks without end is for the one who wrote it to avoid: put `maxInputLength` before it.
 *
 * Letters that look like others (Cyrillic `а`), numbers for letters and other spellings are not seen through.
 */
export const denyList = (patterns: Patterns, options: GuardOptions = {}): Interceptor => {
  checkOptions('denyList()', options, guardRules);
  const denied = readGuardPatterns('denyList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      const place = denied.findIndex((it) => texts.some((text) => isFoundAnyhow(text, it)));
      if (place === -1) return true;
      return { allowed: false, reason: `it holds what is at place ${place + 1} of the list` };
    },
    { name: 'denyList', ...defined(options) },
  );
};

const isFound = ({ folded, text }: Read, it: GuardPattern): boolean =>
  it.kind === 'words' ? hasWords(folded, it.words) : it.pattern.test(text);

/** As it came, or as it is read. */
const isFoundAnyhow = (read: Read, it: GuardPattern): boolean =>
  isFound(read, it) || (it.kind !== 'words' && it.pattern.test(read.cleaned));
