import type { Patterns } from '../interceptors/patterns.js';
import type { PrepareInterceptor } from '../interceptor.js';
import { guardInput, type GuardOptions, guardRules, readingsOf } from './guard-input.js';
import { checkOptions, defined } from '../options.js';
import {
  type GuardPattern,
  hasWords,
  type Read,
  read,
  readGuardPatterns,
} from './guard-patterns.js';

/**
 * Refuses what holds any of these. Words are found as whole words in any case, however their characters are encoded (NFKC),
 * whatever white space is between them and whatever invisible characters are in them; in scripts that do not part their words,
 * anywhere. A RegExp is tested as it is, on the text as it came and on that which is read; one with the flag `g` or `y`
 * is refused, and one that backtracks without end is for the one who wrote it to avoid: put `maxInputLength` before it.
 *
 * Letters that look like others (Cyrillic `а`), numbers for letters and other spellings are not seen through.
 */
export const denyList = (patterns: Patterns, options: GuardOptions = {}): PrepareInterceptor => {
  checkOptions('denyList()', options, guardRules);
  const denied = readGuardPatterns('denyList()', patterns);
  return guardInput(
    (asked) => {
      const texts = readingsOf(asked).map(read);
      const place = denied.findIndex((it) => texts.some((text) => holds(text, it)));
      if (place === -1) return true;
      return { allowed: false, reason: `it holds what is at place ${place + 1} of the list` };
    },
    { name: 'denyList', ...defined(options) },
  );
};

const holds = (text: Read, it: GuardPattern): boolean =>
  it.kind === 'words'
    ? hasWords(text.folded, it.words)
    : it.pattern.test(text.text) || it.pattern.test(text.cleaned);
