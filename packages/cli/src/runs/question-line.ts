import { promptSign } from '../presentation/introduction.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';

/** Formats a question on one line, with the prompt. */
export const questionLine = (question: string, theme: Theme): string =>
  `${promptSign(theme)}${oneLine(question, theme.width - 2, theme)}\n`;
