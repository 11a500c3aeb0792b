import type { Theme } from './theme.js';

/** Introduces the model and the missing capabilities, before the first answer. */
export const introduction = (
  about: string,
  warnings: readonly string[],
  { colors, unicode }: Theme,
): string => {
  const notes = warnings.map((warning) => `${unicode ? '•' : '*'} ${warning}`);
  return [`Millrace, with ${about}.`, ...notes].map((line) => `${colors.dim(line)}\n`).join('');
};

export const promptSign = ({ colors, unicode }: Theme): string =>
  colors.bold(unicode ? '› ' : '> ');
