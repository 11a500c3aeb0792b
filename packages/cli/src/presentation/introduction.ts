import { oneLine } from './shorten.js';
import type { Theme } from './theme.js';
import { wrapFor } from './wrap.js';

/** Introduces the model and the missing capabilities, before the first answer. */
export const introduction = (about: string, warnings: readonly string[], theme: Theme): string => {
  const { colors, unicode } = theme;
  const notes = warnings.map((warning) => `${unicode ? '•' : '*'} ${warning}`);
  return [`Millrace, with ${about}.`, ...notes]
    .map((line) => `${colors.dim(wrapFor(line, theme))}\n`)
    .join('');
};

export const promptSign = ({ colors, unicode }: Theme): string =>
  colors.bold(unicode ? '› ' : '> ');

/** Formats a question on one line, with the prompt. */
export const questionLine = (question: string, theme: Theme): string =>
  `${promptSign(theme)}${oneLine(question, theme.width - 2, theme)}\n`;
