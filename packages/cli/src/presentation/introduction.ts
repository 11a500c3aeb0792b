import type { Theme } from './theme.js';

/** Says before the first answer what will give it, and what it has to do without. */
export const introduction = (
  about: string,
  warnings: readonly string[],
  { colors, unicode }: Theme,
): string => {
  const notes = warnings.map((warning) => `${unicode ? '•' : '*'} ${warning}`);
  return [`Millrace, with ${about}.`, ...notes].map((line) => `${colors.dim(line)}\n`).join('');
};

/** What stands before a question. */
export const promptSign = ({ colors, unicode }: Theme): string =>
  colors.bold(unicode ? '› ' : '> ');
